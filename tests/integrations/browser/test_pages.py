"""The pages in a real browser: charts are drawn, controls work, hostile names do nothing."""

from __future__ import annotations

import re

import pytest

from gradclinic.pages.report import report
from gradclinic.store.reader import read
from tests.pages.runs import BREAKOUT, HOSTILE, begun, finished, train

LAYERS = ("encoder.0.weight", "encoder.2.weight", "head.weight")


@pytest.fixture
def report_page(page, tmp_path):
    """A report of a run, opened from disk and drawn to its end."""

    def opened(*names: str, **document: str):
        path = finished(tmp_path / "run", *(names or LAYERS), **document)
        file = tmp_path / "report.html"
        file.write_text(report(read(path), {}), encoding="utf-8")
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-drawn]")
        return page

    return opened


def _rows(page) -> list[str]:
    """The layers that the heat map shows."""
    return page.locator("#figure-flow0 .ytick text").all_text_contents()


def test_all_charts_of_a_report_are_drawn(report_page):
    page = report_page()
    charts = page.locator("figure .js-plotly-plot")
    assert charts.count() == page.locator("figure").count() == 14
    assert page.locator("#figure-loss .scatterlayer .trace").count() >= 2
    assert page.locator("#figure-flow0 .heatmaplayer image").count() == 1
    assert page.locator("#figure-bars0 .barlayer .point").count() == 3
    assert page.get_by_role("heading", name="Diagnosis").is_visible()


def test_a_report_is_used_by_keyboard_alone(report_page):
    page = report_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#theme").focus()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    slider = page.locator("#figure-bars0 input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    page.get_by_text("update 0", exact=True).wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text("update 1", exact=True).wait_for()


def test_figures_are_narrowed_to_a_layer(report_page):
    page = report_page()
    assert len(_rows(page)) == 3
    page.locator("#layers").fill("HEAD")
    page.wait_for_function("document.querySelectorAll('#figure-flow0 .ytick text').length === 1")
    assert _rows(page) == ["head.weight"]
    page.locator("#layers").fill("")
    page.wait_for_function("document.querySelectorAll('#figure-flow0 .ytick text').length === 3")


def test_what_a_program_calls_its_layers_does_nothing(report_page):
    page = report_page(HOSTILE, BREAKOUT, "c", message=HOSTILE + BREAKOUT, line=BREAKOUT)
    assert page.title() != "taken"
    assert page.locator("img").count() == 0
    assert page.get_by_text(HOSTILE + BREAKOUT).first.is_visible()
    assert any("<img" in row for row in _rows(page))


def test_paper_gets_the_figures_and_no_controls(report_page):
    page = report_page()
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    assert page.locator("#figure-tape").is_visible()
    assert len(page.pdf()) > 50_000


def test_a_run_that_trains_is_followed(page, dashboard, tmp_path):
    store = begun(tmp_path / ".gradclinic" / "runs" / "now", HOSTILE, *LAYERS[:2])
    train(store, 0, 50)
    store.write()
    page.goto(dashboard(tmp_path))
    page.get_by_role("link", name="now").click()
    page.wait_for_selector("body[data-drawn]")
    assert "50 updates" in page.locator("#about").text_content()
    assert page.locator("#live").text_content() == "running"
    points = page.locator("#figure-loss .scatterlayer .trace").count()
    train(store, 50, 70)
    store.write()
    page.get_by_text(re.compile("120 updates")).wait_for()
    page.locator("#alert", has_text="the scaler skipped this update").wait_for()
    # Long enough now for a smoothed line beside the plain one, and a mark for the skipped update.
    page.wait_for_selector("#figure-loss .scatterlayer .trace:nth-child(3)")
    assert points == 1
    assert page.locator("img").count() == 0
    store.finish(code=0)
    page.locator("#live", has_text="finished").wait_for()


def test_two_runs_are_compared(page, dashboard, tmp_path):
    runs = tmp_path / ".gradclinic" / "runs"
    finished(runs / "first")
    finished(runs / "second", message=HOSTILE)
    page.goto(dashboard(tmp_path))
    for name in ("first", "second"):
        page.get_by_label(f"compare {name}").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("body[data-drawn]")
    assert page.locator("#figure-loss .scatterlayer .trace").count() == 2
    assert page.locator(".columns article").count() == 2
    assert page.title() == "2 runs · gradclinic"
