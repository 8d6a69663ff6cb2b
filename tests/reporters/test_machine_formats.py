"""What other programs read, json and github annotations; and markdown for pull requests."""

from __future__ import annotations

import json

import jsonschema
import pytest

from gradclinic import __version__
from gradclinic.findings import Diagnosis
from gradclinic.reporters import names

STATE = {"enum": ["pass", "fail", "not seen"]}
SCHEMA_1 = {
    "type": "object",
    "required": ["schema", "tool", "command", "target", "findings", "judged", "checklist", "summary"],
    "properties": {
        "schema": {"const": 1},
        "tool": {"const": {"name": "gradclinic", "version": __version__}},
        "findings": {
            "items": {
                "required": [
                    "code", "name", "severity", "kind", "confidence", "sources", "message", "location",
                    "evidence", "explains", "fix",
                ],
                "properties": {
                    "code": {"pattern": "^GC[0-9]{3}$"},
                    "severity": {"enum": ["error", "warning", "info"]},
                    "kind": {"enum": ["cause", "symptom"]},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "sources": {"items": {"enum": ["static", "runtime", "probe"]}},
                    "location": {
                        "type": ["object", "null"],
                        "required": ["path", "line", "column", "function"],
                        "properties": {"line": {"type": "integer", "minimum": 1}},
                    },
                    "evidence": {"items": {"required": ["label", "value"]}},
                    "explains": {"items": {"type": "string"}},
                    "fix": {"type": ["object", "null"], "required": ["text", "edits"]},
                },
            }
        },
        "judged": {"items": {"required": ["check", "state"], "properties": {"state": STATE}}},
        "checklist": {"items": {"required": ["point", "state"], "properties": {"state": STATE}}},
        "summary": {"required": ["error", "warning", "info", "files", "steps", "elapsed_s"]},
    },
}  # fmt: skip


def test_json_is_schema_1(render, diagnosis):
    document = json.loads(render("json", diagnosis))
    jsonschema.validate(document, SCHEMA_1)
    counted = {"error": 2, "warning": 0, "info": 1}
    assert document["summary"] == {**counted, "files": 1, "steps": 50, "elapsed_s": 3.22}
    cause, advice, symptom = document["findings"]
    assert cause["location"] == {"path": "train.py", "line": 12, "column": 4, "function": "train"}
    assert cause["explains"] == ["GC601"]
    assert "explained_by" not in cause
    assert symptom["explained_by"] == "GC109"
    assert symptom["location"] is None
    assert advice["fix"] is None
    assert document["judged"][2] == {"check": "graph shape", "state": "not seen", "why": "model is compiled"}
    assert document["judged"][1] == {"check": "schedule", "state": "pass"}


def test_github_annotations_escape_what_the_workflow_command_reserves(render, diagnosis):
    cause, advice, symptom, problem = render("github", diagnosis).splitlines()
    assert cause.startswith("::error title=GC109 clip-after-step,file=train.py,line=12,col=5::gradients are ")
    assert "%0Aorder seen: backward:10 step:11 clip:12%0Afix: move the clip up" in cause
    assert advice.startswith("::notice title=GC611 value-clipping,file=a%2Cb%3Ac.py,line=3,col=1::")
    assert advice.endswith("::50%25 of steps, 3: bent")
    assert symptom.startswith("::error title=GC601 exploding-gradients::")
    assert problem.startswith("::warning title=gradclinic::helper.py:1:5")


def test_markdown_reads_well_in_a_pull_request(render, diagnosis):
    shown = render("markdown", diagnosis)
    assert shown.startswith("## gradclinic: 2 errors, 1 note in 1 file, 50 steps\n")
    assert "### error GC109 clip-after-step at `train.py:12:5`\n" in shown
    assert "```python\nloss.backward()\noptimizer.step()\n" in shown
    assert "- explained by GC109\n" in shown
    assert "- **fix**: move the clip up" in shown
    assert "### Not judged\n\n- helper.py:1:5" in shown


@pytest.mark.parametrize("name", names())
def test_every_format_can_show_nothing(render, name):
    render(name, Diagnosis("lint", "."))


def test_the_formats_are_those_that_are_promised():
    assert names() == ["github", "json", "markdown", "sarif", "text"]
