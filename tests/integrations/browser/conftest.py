"""A real browser, and a real dashboard for it to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SOURCE

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[playwright.Browser]:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs chromium; scripts/install_browser brings it")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser, dashboard) -> Iterator[playwright.Page]:
    """A page in a light theme; fails the test if anything on it fails or is fetched from elsewhere.

    Asks for the dashboard so that it closes before that: a page without its server has reason to complain.
    """
    context = browser.new_context(color_scheme="light", viewport={"width": 1320, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    failures: list[str] = []
    opened.on("pageerror", lambda error: failures.append(str(error)))
    opened.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    opened.on("request", lambda asked: None if _is_near(asked.url) else failures.append(asked.url))
    yield opened
    context.close()
    assert failures == []


def _is_near(address: str) -> bool:
    return address.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))


@pytest.fixture
def dashboard() -> Iterator[Callable[[Path], str]]:
    """`gradclinic dashboard` as a user starts it; returns its address."""
    processes: list[subprocess.Popen[str]] = []

    def start(place: Path) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", "gradclinic", "dashboard", "--port", "0", str(place)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in processes:
        process.terminate()
        process.wait()
