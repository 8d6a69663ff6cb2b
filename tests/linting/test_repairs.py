"""Fixes as a user meets them: the line is where it belongs, and all else is as it was."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest

from gradclinic.config import Config
from gradclinic.facts import Source
from gradclinic.findings import Finding
from gradclinic.linting.examine import examine_text
from gradclinic.linting.fixing import fix_source, fixable
from gradclinic.rules import all_rules
from gradclinic.source_text import SourceText

SCRIPT = """\
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
scaler = torch.amp.GradScaler("cpu")
"""
BATCH = "    x = torch.randn(8, 4)\n    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))\n"


def loop(body: str) -> str:
    """A script that trains with these lines at the end of its loop."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{SCRIPT}for step in range(20):\n{BATCH}{lines}"


def found(text: str) -> tuple[Finding, ...]:
    return examine_text(SourceText(text), "train.py", Config()).findings


def fixed(text: str, *, unsafe: bool = False) -> str:
    return fix_source(SourceText(text), "train.py", Config(), unsafe=unsafe)[0].text


FIXED = [
    pytest.param(rule.code, script, id=f"{rule.code}-{name}")
    for rule in all_rules()
    if Source.STATIC in rule.sources
    for name, script in rule.bad.items()
    if any(finding.code == rule.code and fixable(finding, unsafe=True) for finding in found(script))
]


def test_the_rules_whose_repair_is_mechanical_have_one():
    having = {parameter.id.partition("-")[0] for parameter in FIXED}
    order = {"GC101", "GC102", "GC103", "GC104", "GC105", "GC109", "GC110", "GC111", "GC112"}
    graphs = {"GC209", "GC210", "GC212", "GC406"}
    assert having >= order | graphs | {"GC501", "GC502", "GC503", "GC504"}


@pytest.mark.parametrize(("code", "script"), FIXED)
def test_a_fixed_script_is_clean_of_its_fault_and_stays_as_it_is(code: str, script: str):
    commented = "".join(f"{line}  # note {number}\n" for number, line in enumerate(script.splitlines()))
    once = fixed(commented, unsafe=True)
    ast.parse(once)
    assert once != commented
    assert code not in {finding.code for finding in found(once)}
    assert fixed(once, unsafe=True) == once
    assert sorted(_comments(once)) == sorted(_comments(commented))
    untouched = [line for line in commented.splitlines() if line in once.splitlines()]
    assert len(untouched) >= len(commented.splitlines()) - 1


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def test_a_clip_moves_before_the_step_with_its_comment():
    text = loop(
        "optimizer.zero_grad()\nloss.backward()\n# update\noptimizer.step()\n"
        f"# not too far\n{CLIP}  # really\nprint(loss)"
    )
    assert fixed(text) == loop(
        f"optimizer.zero_grad()\nloss.backward()\n# not too far\n{CLIP}  # really\n"
        "# update\noptimizer.step()\nprint(loss)"
    )


def test_a_clip_under_a_condition_goes_with_it_if_one_asks():
    text = loop(f"optimizer.zero_grad()\nloss.backward()\noptimizer.step()\nif len(x) > 4:\n    {CLIP}")
    assert fixed(text) == text
    assert fixed(text, unsafe=True) == loop(
        f"optimizer.zero_grad()\nloss.backward()\nif len(x) > 4:\n    {CLIP}\noptimizer.step()"
    )


def test_a_clip_of_scaled_gradients_is_moved_and_then_unscaled():
    text = loop(
        f"optimizer.zero_grad()\nscaler.scale(loss).backward()\nscaler.step(optimizer)\n{CLIP}\nscaler.update()"
    )
    assert fixed(text, unsafe=True) == loop(
        "optimizer.zero_grad()\nscaler.scale(loss).backward()\n"
        f"scaler.unscale_(optimizer)\n{CLIP}\nscaler.step(optimizer)\nscaler.update()"
    )


def test_what_stands_between_makes_a_move_unsafe():
    text = loop(f"optimizer.zero_grad()\nloss.backward()\noptimizer.step()\nprint(loss)\n{CLIP}")
    assert fixed(text) == text
    assert fixed(text, unsafe=True) != text


@pytest.mark.parametrize(
    "body",
    [
        f"optimizer.step(); {CLIP}",
        f"optimizer.step()\nlimit = 1.0\n{CLIP.replace('1.0', 'limit')}",
        f"optimizer.step()\nif len(x) > 4:\n    {CLIP}\nelse:\n    pass",
    ],
    ids=["shares its line", "needs what is assigned between", "has another branch"],
)
def test_what_is_no_matter_of_moving_a_line_is_left_to_the_user(body: str):
    text = loop(f"optimizer.zero_grad()\nloss.backward()\n{body}")
    assert "GC109" in {finding.code for finding in found(text)}
    assert fixed(text, unsafe=True) == text


def test_a_schedule_of_epochs_goes_behind_the_loop_over_batches():
    head = f"{SCRIPT}for epoch in range(3):\n"
    inner = "    for x in torch.randn(9, 8, 4):\n" + "".join(
        f"        {line}\n"
        for line in (
            "loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))",
            "optimizer.zero_grad()",
            "loss.backward()",
            "optimizer.step()",
        )
    )
    text = f"{head}    scheduler.step()\n{inner}"
    assert fixed(text) == text
    assert fixed(text, unsafe=True) == f"{head}{inner}    scheduler.step()\n"


def test_names_are_those_of_the_place():
    text = (
        "import torch\nfrom torch import nn\n\ndef fit(net, solver, data):\n    for x in data:\n"
        "        loss = nn.functional.mse_loss(net(x), x)\n        loss.backward()\n        solver.step()\n\n"
        "model = nn.Linear(4, 4)\n"
        "fit(model, torch.optim.SGD(model.parameters(), 0.1), torch.randn(9, 8, 4))\n"
    )
    assert fixed(text) == text.replace("        loss.b", "        solver.zero_grad()\n        loss.b")


def test_the_last_line_needs_no_newline():
    text = loop(f"optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n{CLIP}").rstrip("\n")
    assert fixed(text) == loop(f"optimizer.zero_grad()\nloss.backward()\n{CLIP}\noptimizer.step()")
    text = loop("optimizer.zero_grad()\nscaler.scale(loss).backward()\nscaler.step(optimizer)").rstrip("\n")
    assert fixed(text) == text + "\n    scaler.update()"


def test_characters_of_several_bytes_do_not_shift_anything():
    text = loop('optimizer.zero_grad()\nscaler.scale(loss).backward(); é = "é"\noptimizer.step()')
    assert "é" in fixed(text, unsafe=True)
    text = loop("optimizer.zero_grad()\nscaler.scale(loss).backward()\noptimizer.step()  # schön, é")
    assert "    scaler.step(optimizer)  # schön, é\n    scaler.update()\n" in fixed(text)


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("loss.backward( retain_graph=True )", "loss.backward()"),
        ("loss.backward(None, retain_graph=True)", "loss.backward(None)"),
        ("loss.backward(retain_graph=True, inputs=None)  # all", "loss.backward(inputs=None)  # all"),
    ],
)
def test_a_keyword_goes_with_its_comma(written: str, left: str):
    script = loop(f"optimizer.zero_grad()\n{written}\noptimizer.step()")
    assert fixed(script) == script.replace(written, left)
