"""What a notebook shows of a diagnosis and of a gradient flow: all of it, and nothing alive in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import torch
from torch import nn

import gradclinic
from gradclinic.facts import Location
from gradclinic.findings import (
    Check,
    Diagnosis,
    Evidence,
    Finding,
    Fix,
    Kind,
    Severity,
    State,
    Summary,
    Table,
)

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&\"'"


class _Tags(HTMLParser):
    """Every tag and attribute that is really in it, and whether all that opens closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _finding(**changes: object) -> Finding:
    known: dict[str, object] = {
        "code": "GC109",
        "name": "clip-after-step",
        "severity": Severity.ERROR,
        "kind": Kind.CAUSE,
        "message": "clipped too late",
        "location": Location("train.py", 12),
        "evidence": (Evidence("order seen", "backward:10 step:11 clip:12"),),
        "fix": Fix("move the clip up"),
    }
    return Finding(**{**known, **changes})  # type: ignore[arg-type]


def test_everything_a_reader_needs_is_in_it():
    symptom = _finding(code="GC601", name="exploding", kind=Kind.SYMPTOM, explained_by="GC109")
    html = Diagnosis(
        "run",
        "train.py",
        (_finding(), symptom),
        judged=(Check("loss scaling", State.NOT_SEEN, "no scaler was seen"),),
        summary=Summary(steps=50),
        problems=("half of it was compiled",),
    )._repr_html_()
    for part in (
        "clipped too late",
        "train.py:12",
        "backward:10 step:11 clip:12",
        "move the clip up",
        "explained by GC109",
        "2 errors",
        "50 steps",
        "no scaler was seen",
        "half of it was compiled",
    ):
        assert part in html
    assert _Tags(html).open == []


def test_the_source_is_shown_where_it_can_be_read(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("loss.backward()\noptimizer.step()\nclip(model)\n")
    html = Diagnosis("run", "train.py", (_finding(location=Location(str(script), 3)),))._repr_html_()
    assert "&gt; 3 │ clip(model)" in html


def test_an_edited_file_is_shown_as_it_is_now(tmp_path):
    script = tmp_path / "train.py"
    diagnosis = Diagnosis("run", "train.py", (_finding(location=Location(str(script), 1)),))
    for code in ("first()", "second_thoughts()"):
        script.write_text(f"{code}\n")
        assert f"1 │ {code}" in diagnosis._repr_html_()


def test_nothing_a_program_says_comes_alive(tmp_path):
    script = tmp_path / "<b>train.py"
    script.write_text(f"x = {HOSTILE!r}\n")
    hostile = _finding(
        name=HOSTILE,
        message=HOSTILE,
        location=Location(str(script), 1),
        evidence=(Evidence(HOSTILE, HOSTILE),),
        fix=Fix(HOSTILE),
    )
    html = Diagnosis(
        "probe",
        HOSTILE,
        (hostile,),
        judged=(Check(HOSTILE, State.PASS, HOSTILE),),
        problems=(HOSTILE,),
        conclusion=HOSTILE,
        tables=(Table(HOSTILE, (HOSTILE,), ((HOSTILE,),), (HOSTILE,)),),
    )._repr_html_()
    parsed = _Tags(html)
    assert {"script", "img", "b>train.py"}.isdisjoint(parsed.tags)
    assert parsed.attributes <= {"class"}
    assert "http" not in html


def test_it_takes_no_side_between_dark_and_light():
    html = Diagnosis("run", "train.py", (_finding(),))._repr_html_()
    backgrounds = re.findall(r"background:\s*([^;]+);", html)
    assert backgrounds
    assert all(value == "none" or value.startswith("rgba(128, 128, 128") for value in backgrounds)
    assert not re.search(r"[^-]color:\s*(#000|#fff|black|white)", html)


class _TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        shared = self.body(x)
        return {"left": self.left(shared), "right": self.right(shared.detach())}


def test_a_gradient_flow_shows_what_no_term_reaches():
    case = gradclinic.Case(
        model=_TwoHeads(),
        batch=torch.ones(4, 3),
        loss=lambda out, batch: {HOSTILE: out["left"].pow(2).mean(), "right": out["right"].pow(2).mean()},
    )
    html = gradclinic.probe_flow(case)._repr_html_()
    assert "<td>4/6</td><td>2/6</td>" in html
    row = html.split("<code>body.weight</code>")[1].split("</tr>")[0]
    assert row.count('<td class="lost">none</td>') == 1
    parsed = _Tags(html)
    assert parsed.open == []
    assert "script" not in parsed.tags


def test_a_long_flow_says_how_much_it_left_out():
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(300)))
    case = gradclinic.Case(model=model, batch=torch.ones(1, 1), loss=lambda out, batch: out.mean())
    html = gradclinic.probe_flow(case)._repr_html_()
    assert html.count("<code>") == 500
    assert "and 100 more parameters" in html


def test_printed_it_is_the_report_of_the_command():
    assert str(Diagnosis("run", "train.py", (_finding(),))).startswith(
        "train.py:12: error GC109 clip-after-step\n"
    )


def test_the_curve_of_a_rate_sweep_draws_itself():
    def make() -> gradclinic.Case:
        torch.manual_seed(0)
        x = torch.randn(32, 4)
        return gradclinic.Case(
            nn.Linear(4, 1),
            (x, x.sum(1, keepdim=True)),
            lambda out, batch: nn.functional.mse_loss(out, batch[1]),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        )

    curve = gradclinic.probe_lr(make())
    assert curve.suggestion is not None
    shown = curve._repr_html_()
    assert {"svg", "polyline", "circle"} <= _Tags(shown).tags
    assert f"suggestion {curve.suggestion:.2g}" in shown
    assert str(curve).splitlines()[-1].startswith(f"lr: train with {curve.suggestion:.2g}")
