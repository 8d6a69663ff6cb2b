"""The dashboard as a browser talks to it: what it shows, to whom, and what it never shows."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from gradclinic.pages.dashboard.app import application
from tests.pages.runs import BREAKOUT, HOSTILE, begun, finished, train


def _runs(folder):
    return folder / ".gradclinic" / "runs"


@pytest.fixture
def client(tmp_path) -> TestClient:
    finished(_runs(tmp_path) / "one")
    finished(_runs(tmp_path) / "two", HOSTILE, BREAKOUT, "c", message=HOSTILE + BREAKOUT)
    (tmp_path / "secret.sqlite").write_text("not for others")
    return TestClient(application(tmp_path, {}), base_url="http://127.0.0.1:8642")


def test_all_runs_are_listed(client):
    runs = client.get("/api/runs").json()["runs"]
    assert {(one["name"], one["state"], one["updates"], one["verdict"]) for one in runs} == {
        ("one", "finished", 200, "1 error"),
        ("two", "finished", 200, "1 error"),
    }
    assert client.get("/").status_code == 200


def test_a_run_is_sent_once_and_again_when_there_is_more(tmp_path, client):
    store = begun(_runs(tmp_path) / "three")
    train(store, 0, 20)
    store.write()
    first = client.get("/api/run", params={"name": "three"}).json()
    assert first["state"] == "running"
    assert "loss" in [figure["id"] for figure in first["figures"]]
    again = client.get("/api/run", params={"name": "three", "known": first["version"]}).json()
    assert again == {"version": first["version"]}
    train(store, 20, 100)
    store.write()
    more = client.get("/api/run", params={"name": "three", "known": first["version"]}).json()
    assert more["head"]["line"].count("120 updates") == 1
    assert more["alerts"] > first["alerts"]


def test_two_runs_are_drawn_in_the_same_axes(client):
    answer = client.get("/api/compare?name=one&name=two").json()
    loss = answer["figures"][0]
    assert [trace["name"] for trace in loss["data"]] == ["one", "two"]
    assert answer["found"].count("<article") == 2


def test_what_a_program_says_stays_text(client):
    answer = client.get("/api/run", params={"name": "two"}).json()
    assert HOSTILE not in answer["found"]
    assert BREAKOUT not in answer["found"]
    assert "&lt;img src=x" in answer["found"]
    page = client.get("/run", params={"name": 'x"><script>'})
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "name", ["../secret", "secret", "/etc/passwd", "one/rank0", "..", "one/../../..", ""]
)
def test_nothing_outside_the_runs_is_served(client, name):
    for page in ("/run", "/api/run", "/compare", "/api/compare"):
        answer = client.get(page, params={"name": name})
        assert "not for others" not in answer.text
        assert answer.status_code == 404
    assert "not for others" not in client.get(f"/static/{name}").text


def test_every_answer_forbids_foreign_scripts(client):
    for page in ("/", "/api/runs", "/static/page.js", "/nowhere", "/run?name=one"):
        policy = client.get(page).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy


def test_a_page_that_calls_itself_otherwise_is_turned_away(client):
    assert client.get("/api/runs", headers={"host": "attacker.example"}).status_code == 421
    assert client.get("/api/runs", headers={"host": "localhost:8642"}).status_code == 200


def test_with_a_token_only_those_who_have_it_see_anything(tmp_path):
    finished(_runs(tmp_path) / "one")
    guarded = application(tmp_path, {}, token="sesame")
    stranger = TestClient(guarded, base_url="http://10.0.0.1:8642")
    assert stranger.get("/api/runs").status_code == 403
    assert stranger.get("/?token=guess").status_code == 403
    assert stranger.get("/static/page.js").status_code == 403
    friend = TestClient(guarded, base_url="http://10.0.0.1:8642")
    opened = friend.get("/?token=sesame")
    assert opened.status_code == 200
    assert "token" not in str(opened.url)
    assert friend.get("/api/runs").json()["runs"][0]["name"] == "one"
