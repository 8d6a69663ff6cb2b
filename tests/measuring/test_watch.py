"""`watch` from inside a program that trains already."""

import torch
from torch import nn
from torch.nn import functional

import gradclinic
from gradclinic.store.folder import resolve
from gradclinic.store.reader import read


def test_a_fault_is_told_while_the_loop_still_runs():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-7)
    with gradclinic.watch(model, optimizer) as monitor:
        for _ in range(60):
            x = torch.randn(64, 8)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()
        diagnosis = monitor.diagnose()
    assert diagnosis.findings[0].code == "GC306"
    assert diagnosis.summary.steps == 60


def test_torch_is_as_before_once_the_watch_ends():
    before = torch.autograd.backward, torch.optim.Optimizer.zero_grad, torch.is_anomaly_enabled()
    model = nn.Linear(2, 1)
    monitor = gradclinic.watch(model, torch.optim.SGD(model.parameters(), lr=0.1))
    monitor.stop()
    assert (torch.autograd.backward, torch.optim.Optimizer.zero_grad, torch.is_anomaly_enabled()) == before


def test_a_watch_is_kept_for_the_report_when_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with gradclinic.watch(model, optimizer, keep=True):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(4, 2)).square().mean().backward()
            optimizer.step()
    run = read(resolve(None))
    assert len(run.trainings[0].steps) == 5
    assert run.documents["diagnosis"]["command"] == "watch"
    assert run.state == "finished"
