"""`gradclinic report`: one file that holds a whole run and nothing that can run by itself."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from struct import unpack

import pytest

from gradclinic.pages.figures import draw
from gradclinic.pages.report import report
from gradclinic.store.reader import read
from tests.pages.runs import BREAKOUT, HOSTILE, begun, finished, train


def _figures(page: str) -> list[dict]:
    """What the page's script will read."""
    (text,) = re.findall(r'<script type="application/json" id="kept-figures">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def _numbers(packed: dict) -> list[float]:
    raw = b64decode(packed["f4"])
    return list(unpack(f"<{len(raw) // 4}f", raw))


def test_the_latest_run_becomes_one_file(gradclinic, tmp_path):
    finished(tmp_path / ".gradclinic" / "runs" / "one")
    ended = gradclinic("report")
    assert ended.code == 0
    assert ended.err == ""
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "gradients are clipped too late" in page
    assert "move the clip up" in page
    # Nothing is fetched: the only addresses are in what plotly's own script carries.
    head = page.split("<script>", 1)[0] + page.rsplit("</script>", 1)[1]
    assert not re.search(r"(src|href)=\"(?!#)", head)


def test_every_figure_that_has_data_is_drawn(tmp_path):
    run = read(finished(tmp_path / "run"))
    figures, missing = draw(run)
    assert missing == []
    assert [figure.id.rstrip("0") for figure in figures] == [
        "loss",
        "flow",
        "bars",
        "spread",
        "ratios",
        "norm",
        "norms",
        "rates",
        "scale",
        "dead",
        "saturated",
        "terms",
        "memory",
        "tape",
    ]
    by_id = {figure.id: figure for figure in figures}
    assert len(by_id["rates"].data) == 2
    assert _numbers(by_id["loss"].data[0]["y"])[0] == pytest.approx(2.0)
    assert by_id["flow0"].data[0]["y"] == ["layers.0.weight", "layers.2.weight", "head.weight"]
    assert "2 of 200" in by_id["scale0"].note


def test_no_figure_leaves_a_hole_beside_it(tmp_path):
    figures, _ = draw(read(finished(tmp_path / "run")))
    narrow = "".join("w" if figure.wide else "n" for figure in figures)
    assert all(len(row) % 2 == 0 for row in narrow.split("w"))


def test_what_cannot_be_drawn_is_said(tmp_path):
    store = begun(tmp_path / "run")
    store.finish()
    train(store, 0, 1)
    store.finish()
    run = read(store.path)
    assert {one.title: one.why for one in draw(run)[1]}["One update"].startswith("the run has not ended")
    assert "No diagnosis yet" in report(run, {})


def test_names_and_messages_of_a_program_stay_text(tmp_path):
    path = finished(tmp_path / "run", HOSTILE, BREAKOUT, "b", message=HOSTILE + BREAKOUT, line=BREAKOUT)
    page = report(read(path), {})
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert HOSTILE not in page
    assert BREAKOUT not in page
    assert "&lt;img src=x" in own
    flow = next(figure for figure in _figures(page) if figure["id"] == "flow0")
    assert all("<" not in name for name in flow["data"][0]["y"])


def test_a_run_of_a_hundred_thousand_updates_makes_a_small_file(tmp_path):
    store = begun(tmp_path / "run", *(f"blocks.{i}.weight" for i in range(60)))
    for first in range(0, 100_000, 10_000):
        train(store, first, 10_000, tensors=60, every=10)
        store.write(last=True)
    store.finish()
    page = report(read(store.path), {})
    assert len(page.encode()) < 8_000_000
    assert max(len(_numbers(trace["y"])) for trace in _figures(page)[0]["data"]) <= 2_100


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "gradclinic: nowhere does not exist; give a run folder"),
        ([], "gradclinic: there is no run here; `gradclinic run train.py` records one"),
        (["notes.txt"], "gradclinic: notes.txt is not a run of gradclinic"),
    ],
)
def test_what_is_not_a_run_is_told_in_one_line(gradclinic, tmp_path, words, says):
    (tmp_path / "notes.txt").write_text("shopping list " * 99)
    ended = gradclinic("report", *words)
    assert ended.code == 2
    assert ended.error_line.startswith(says)
