"""The patients are what their docstrings say, to `lint` and to `run`."""

from __future__ import annotations

import json

import pytest

from gradclinic.commands.demo import TOUR
from gradclinic.gallery import patients

EVERYONE = {patient.name: patient for patient in patients()}


def test_the_tour_shows_sick_and_healthy_patients():
    assert {bool(EVERYONE[name].finding) for name in TOUR} == {True, False}


def test_the_list_has_everyone(gradclinic):
    ended = gradclinic("demo", "--list")
    assert ended.code == 0
    assert all(f"{name} " in ended.out for name in EVERYONE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(patient.name, words, id=f"{words[0]}-{patient.name}")
        for patient in EVERYONE.values()
        for words in patient.examinations
    ],
)
def test_each_examination_has_the_finding_of_the_patient_and_no_other(gradclinic, tmp_path, name, words):
    patient = EVERYONE[name]
    patient.come_to(tmp_path)
    *command, target = words
    ended = gradclinic(*command, "--format", "json", "--output", "diagnosis.json", target)
    found = json.loads((tmp_path / "diagnosis.json").read_text())["findings"]
    causes = [
        finding["code"] for finding in found if finding["severity"] != "info" and finding["kind"] == "cause"
    ]
    assert causes == ([patient.finding] if patient.finding else [])
    assert ended.code == (1 if patient.finding else 0)


def test_one_patient_is_linted_and_run(gradclinic):
    ended = gradclinic("demo", "clip_after_step")
    assert ended.code == 0, ended.err
    assert "$ gradclinic lint clip_after_step.py\nclip_after_step.py:27:9: error GC109" in ended.out
    assert "$ gradclinic run clip_after_step.py\n" in ended.out
    assert ended.out.count("GC109 clip-after-step") == 2
