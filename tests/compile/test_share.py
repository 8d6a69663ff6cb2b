"""Tasks share a compiled graph when their graphs are equal, and never otherwise."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

import gradclinic as gc
from gradclinic.compile.lifted import MissingTensor


class Task(nn.Module):
    def __init__(self, body, cutoff=2.0, mask=None, widths=(4, 1)):
        super().__init__()
        self.body = body
        self.head = nn.Linear(*widths).double()
        self.cutoff = cutoff
        self.mask = mask
        self.register_buffer("bias", torch.randn(1, dtype=torch.float64))
        self.register_buffer("scale", torch.rand(3, dtype=torch.float64) + 0.5)

    def forward(self, x):
        x = x.detach().requires_grad_(True)
        hidden = torch.tanh(self.body((x * self.scale).clamp(max=self.cutoff)))
        if self.mask is not None:
            hidden = hidden * torch.tensor(self.mask, dtype=torch.float64)
        energy = self.head(hidden).sum() + self.bias.sum()
        (slope,) = torch.autograd.grad(energy, x, create_graph=True)
        return {"energy": energy, "force": -slope}


@pytest.fixture
def body():
    return nn.Linear(3, 4).double()


X = torch.randn(5, 3, dtype=torch.float64)


def gradients(call, model, key):
    wanted = list(model.parameters())
    grads = torch.autograd.grad(call(X)[key].square().sum(), wanted, allow_unused=True)
    return [torch.zeros_like(p) if grad is None else grad for p, grad in zip(wanted, grads, strict=True)]


def assert_matches_its_own_eager(fast, model):
    for key in ("energy", "force"):
        torch.testing.assert_close(fast(X)[key], model(X)[key], rtol=1e-10, atol=1e-12)
        for a, b in zip(gradients(model, model, key), gradients(fast, model, key), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-10, atol=1e-12)


def test_tasks_with_their_own_bias_scale_and_head_weights_share_one_graph(body):
    tasks = {name: Task(body) for name in ("water", "ice", "steam")}
    shared = gc.share_compiled(tasks, X, backend="aot_eager")
    assert shared.groups == (("water", "ice", "steam"),)
    for name, model in tasks.items():
        assert_matches_its_own_eager(shared[name], model)


def test_whole_other_weights_share_too(body):
    tasks = {"one": Task(body), "two": Task(copy.deepcopy(body))}
    with torch.no_grad():
        tasks["two"].body.weight.mul_(-3)
    shared = gc.share_compiled(tasks, X, backend="none")
    assert len(shared.groups) == 1
    assert_matches_its_own_eager(shared["two"], tasks["two"])


@pytest.mark.parametrize(
    "other",
    [
        {"cutoff": 1.0},
        {"cutoff": 2},
        {"mask": [1.0, 1.0, 0.0, 1.0]},
        {"widths": (4, 2)},
    ],
    ids=["cut-off", "type of the cut-off", "mask", "head"],
)
def test_anything_baked_keeps_tasks_apart(body, other):
    tasks = {"one": Task(body, mask=[1.0] * 4 if "mask" in other else None), "two": Task(body, **other)}
    shared = gc.share_compiled(tasks, X, backend="none")
    assert shared.groups == (("one",), ("two",))
    assert_matches_its_own_eager(shared["two"], tasks["two"])


def test_masks_of_equal_value_share(body):
    tasks = {name: Task(body, mask=[1.0, 0.0, 1.0, 1.0]) for name in ("one", "two")}
    assert len(gc.share_compiled(tasks, X, backend="none").groups) == 1


def test_partial_sharing_is_told_apart_by_what_differs_not_by_the_first_parameter(body):
    deeper = nn.Sequential(body, nn.Tanh(), nn.Linear(4, 4).double())
    shared = gc.share_compiled({"one": Task(body), "two": Task(deeper)}, X, backend="none")
    assert len(shared.groups) == 2


def test_a_missing_tensor_is_named_with_its_task(body):
    tasks = {"water": Task(body), "ice": Task(body)}
    shared = gc.share_compiled(tasks, X, backend="none")
    del tasks["ice"].bias
    with pytest.raises(MissingTensor, match=r"task 'ice' has no tensor 'bias'"):
        shared["ice"](X)
    shared["water"](X)


def test_a_checkpoint_beside_the_shared_functions_holds_each_weight_once(body):
    class Trainer(nn.Module):
        def __init__(self, tasks):
            super().__init__()
            self.tasks = nn.ModuleDict(tasks)
            self.fast = gc.share_compiled(tasks, X, backend="none")

    trainer = Trainer({"water": Task(body), "ice": Task(body)})
    assert all(name.startswith("tasks.") for name in trainer.state_dict())
    torch.save(trainer.state_dict(), buffer := io.BytesIO())
    buffer.seek(0)
    loaded = torch.load(buffer)
    storages = {tensor.untyped_storage().data_ptr() for tensor in loaded.values()}
    once = {id(t) for t in [*trainer.parameters(), *trainer.buffers()]}
    assert len(storages) == len(once)


def test_the_cost_of_each_task_is_reported(body):
    shared = gc.share_compiled({"water": Task(body), "ice": Task(body)}, X, backend="aot_eager")
    assert [cost.task for cost in shared.costs] == ["water", "ice"]
    assert all(cost.cpu_s > 0 and cost.peak_mb >= 0 for cost in shared.costs)
    assert "water" in str(shared)
