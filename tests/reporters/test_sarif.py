"""SARIF 2.1.0: what the published schema requires of the objects this reporter writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from gradclinic.facts import Location


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def _list(items: dict[str, Any], **limits: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


LEVEL = {"enum": ["none", "note", "warning", "error"]}
TEXT = _object("text", text={"type": "string"}, markdown={"type": "string"})
FROM_ONE = {"type": "integer", "minimum": 1}
REGION = _object("startLine", startLine=FROM_ONE, startColumn=FROM_ONE, endLine=FROM_ONE, endColumn=FROM_ONE)
ARTIFACT = _object("uri", uri={"type": "string", "format": "uri-reference"})
RULE = _object("id", shortDescription=TEXT, help=TEXT, defaultConfiguration=_object(level=LEVEL))
DRIVER = _object("name", rules=_list(RULE, uniqueItems=True))
REPLACEMENT = _object("deletedRegion", deletedRegion=REGION, insertedContent=_object("text"))
CHANGE = _object("artifactLocation", "replacements", replacements=_list(REPLACEMENT, minItems=1))
FIX = _object("artifactChanges", artifactChanges=_list(CHANGE, minItems=1))
LOCATION = _object(physicalLocation=_object(artifactLocation=ARTIFACT, region=REGION))
RESULT = _object(
    "message",
    message=TEXT,
    level=LEVEL,
    ruleIndex={"type": "integer", "minimum": 0},
    locations=_list(LOCATION),
    fixes=_list(FIX, uniqueItems=True),
)
INVOCATION = _object(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    toolExecutionNotifications=_list(_object("message", message=TEXT, level=LEVEL)),
)
RUN = _object(
    "tool",
    tool=_object("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=_list(INVOCATION),
    results=_list(RESULT),
)
SARIF = _object("version", "runs", version={"const": "2.1.0"}, runs=_list(RUN))


def test_sarif_has_what_its_schema_requires(render, diagnosis):
    document = json.loads(render("sarif", diagnosis))
    jsonschema.validate(document, SARIF)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    cause, advice, symptom = run["results"]
    assert cause["level"] == "error"
    assert advice["level"] == "note"
    assert cause["locations"][0]["physicalLocation"]["region"] == {"startLine": 12, "startColumn": 5}
    assert symptom["locations"] == []
    assert rules[0]["help"]["markdown"] == "# GC109\n\nHelp."
    assert run["invocations"][0]["executionSuccessful"] is False


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("src/train.py", "src/train.py"),
        ("my code/tr#in.py", "my%20code/tr%23in.py"),
        ("/elsewhere/train.py", "file:///elsewhere/train.py"),
    ],
)
def test_sarif_paths_are_uris(render, diagnosis, path, uri):
    finding = replace(diagnosis.findings[0], location=Location(path, 1), fix=None)
    document = json.loads(render("sarif", replace(diagnosis, findings=(finding,))))
    (location,) = document["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == uri
