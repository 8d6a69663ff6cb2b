"""`gradclinic mcp` as a coding tool meets it: a real client, over stdio, on sick and healthy scripts."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

from gradclinic.commands.probe import kind_names
from gradclinic.rules import all_rules
from tests.conftest import SOURCE

HEALTHY = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(8, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
"""

CASE = """\
import torch
from torch import nn
import gradclinic

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(3, 1)
        self.forgotten = nn.Linear(3, 1)

    def forward(self, x):
        return self.used(x)

def make():
    return gradclinic.Case(model=Model(), batch=torch.ones(4, 3), loss=lambda out, batch: out.pow(2).mean())
"""

Call = Callable[..., CallToolResult]


def _server(directory: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "gradclinic", "mcp"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=directory,
    )


def _in_session(directory: Path, use: Callable[[ClientSession], Any]) -> Any:
    async def talk() -> Any:
        async with stdio_client(_server(directory)) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await use(session)

    return anyio.run(talk)


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call one tool of a server that was started in the test's directory."""

    def one(tool: str, **arguments: Any) -> CallToolResult:
        answer = _in_session(tmp_path, lambda session: session.call_tool(tool, arguments))
        assert isinstance(answer, CallToolResult)
        return answer

    return one


def _text(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def _document(answer: CallToolResult) -> dict[str, Any]:
    assert not answer.is_error, _text(answer)
    document = answer.structured_content
    assert document is not None
    assert json.loads(_text(answer)) == document
    return document


def _refusal(answer: CallToolResult) -> str:
    assert answer.is_error
    return _text(answer)


def test_the_tools_say_what_they_take_and_which_of_them_execute_code(tmp_path):
    listed = _in_session(tmp_path, lambda session: session.list_tools()).tools
    tools = {tool.name: tool for tool in listed}
    assert set(tools) == {"lint", "run", "probe", "explain"}
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == {"lint", "explain"}
    assert tools["run"].input_schema["required"] == ["script"]
    assert ", ".join(kind_names()) in tools["probe"].description


def test_lint_answers_with_the_document_the_command_writes(call, gradclinic, sick_script):
    document = _document(call("lint", paths=["train.py"]))
    written = json.loads(gradclinic("lint", "train.py", "--format", "json").out)
    assert document["findings"][0]["code"] == "GC109"
    assert document["findings"] == written["findings"]
    assert document["schema"] == written["schema"] == 1


def test_rules_can_be_selected(call, sick_script):
    assert _document(call("lint", paths=["."], select=["GC101"]))["findings"] == []


def test_run_names_the_fault_and_ends_the_script_after_its_steps(call, sick_script):
    document = _document(call("run", script="train.py", steps=7))
    assert [finding["code"] for finding in document["findings"]] == ["GC109"]
    assert document["findings"][0]["location"]["line"] == 12
    assert document["summary"]["steps"] == 7
    assert document["script"]["exit_code"] == 0


def test_a_healthy_script_is_not_accused_and_its_prints_do_not_break_the_protocol(call, tmp_path):
    (tmp_path / "healthy.py").write_text(HEALTHY)
    document = _document(call("run", script="healthy.py"))
    assert document["findings"] == []
    assert document["script"] == {"exit_code": 0, "last_lines": [f"step {step}" for step in range(20)]}


def test_a_script_that_crashes_is_diagnosed_and_its_end_is_told(call, sick_script):
    sick_script.write_text(sick_script.read_text() + "raise SystemExit('out of cheese')\n")
    document = _document(call("run", script="train.py", steps=1000))
    assert document["findings"][0]["code"] == "GC109"
    assert document["script"] == {"exit_code": 1, "last_lines": ["out of cheese"]}


def test_a_script_that_never_ends_is_diagnosed_from_what_it_did(call, sick_script):
    sick_script.write_text(sick_script.read_text() + "import time\nwhile True: time.sleep(1)\n")
    document = _document(call("run", script="train.py", steps=1000, timeout_s=15))
    assert document["findings"][0]["code"] == "GC109"
    assert document["script"]["exit_code"] == 130


def test_a_module_and_the_arguments_of_a_script(call, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    document = _document(call("run", script="package.train", module=True, arguments=["--lr", "3"]))
    assert document["script"]["last_lines"] == ["['--lr', '3']"]


def test_probe_makes_the_experiment(call, tmp_path):
    (tmp_path / "case.py").write_text(CASE)
    document = _document(call("probe", experiment="flow", target="case.py:make"))
    assert "forgotten" in document["conclusion"]
    assert document["command"] == "probe flow"
    assert document["tables"][0]["columns"][:2] == ["term", "reached"]


def test_explain_opens_a_page_and_lists_them_all(call):
    page = _document(call("explain", rule="clip-after-step"))
    assert page["code"] == "GC109"
    assert page["sections"]["Not the fix"]
    listed = _document(call("explain"))["rules"]
    assert [rule["code"] for rule in listed] == [rule.code for rule in all_rules()]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("lint", {"paths": ["nowhere.py"]}, "nowhere.py: there is no such file or directory"),
        ("lint", {"paths": ["--fix", "train.py"]}, "'--fix' is no path"),
        ("lint", {"paths": ["-"]}, "'-' is no path"),
        ("lint", {"paths": ["train.py"], "select": ["GC999"]}, "'GC999' selects no rule"),
        ("lint", {"paths": ["train.py"], "directory": "nowhere"}, "nowhere is no directory"),
        ("lint", {"paths": "train.py"}, "valid list"),
        ("run", {"script": "nowhere.py"}, "nowhere.py does not exist"),
        ("run", {"script": "train.py", "steps": 0}, "'0' is not a number of steps"),
        ("run", {"script": "--steps"}, "'--steps' is no path"),
        ("probe", {"experiment": "astrology", "target": "case.py:make"}, "invalid choice: 'astrology'"),
        ("probe", {"experiment": "flow", "target": "train.py"}, "write file.py:function"),
        ("explain", {"rule": "GC999"}, "no rule is called 'GC999'"),
    ],
)
def test_bad_input_is_an_error_of_the_tool_that_says_what_is_wrong(call, sick_script, tool, arguments, said):
    before = sick_script.read_text()
    refusal = _refusal(call(tool, **arguments))
    assert said in refusal
    assert "Traceback" not in refusal
    assert sick_script.read_text() == before


def test_a_client_that_leaves_takes_the_running_script_with_it(tmp_path):
    (tmp_path / "forever.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    )

    async def leave_early(session: ClientSession) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(session.call_tool, "run", {"script": "forever.py"})
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                await anyio.sleep(0.05)
            group.cancel_scope.cancel()

    _in_session(tmp_path, leave_early)
    pid = int((tmp_path / "pid").read_text())
    patience = time.monotonic() + 30
    while _is_alive(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_without_the_package_one_line_says_what_to_install(gradclinic, tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('no such package')\n")
    ended = gradclinic("mcp", env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE}"})
    assert ended.code == 2
    assert "pip install 'gradclinic[mcp]'" in ended.error_line
