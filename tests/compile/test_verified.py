"""What `verified_compile` hands out is proven; what cannot be proven is refused with the reason."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradclinic as gc
from gradclinic.compile.proof import NotEquivalent


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
        self.register_buffer("shift", torch.tensor(0.5, dtype=torch.float64))

    def forward(self, x):
        x = x.detach().requires_grad_(True)
        energy = self.net(x).sum() + self.shift
        (slope,) = torch.autograd.grad(energy, x, create_graph=self.training)
        return {"energy": energy, "force": -slope}


def points(count=4):
    return torch.randn(count, 3, dtype=torch.float64)


def gradients(call, model, x):
    return torch.autograd.grad(call(x)["force"].square().sum(), list(model.parameters()), allow_unused=True)


def assert_same_training(fast, model, x):
    for a, b in zip(gradients(model, model, x), gradients(fast, model, x), strict=True):
        assert (a is None) == (b is None) or not (a if b is None else b).any()
        if a is not None and b is not None:
            torch.testing.assert_close(b, a, rtol=1e-10, atol=1e-14)


def test_a_force_loss_trains_as_in_eager_and_every_term_was_compared():
    model = Force()
    fast = gc.verified_compile(model, points(), backend="aot_eager")
    assert_same_training(fast, model, points())
    (proof,) = fast.proofs
    assert {gap.term for gap in proof.terms} == {"energy", "force"}
    assert proof.worst() <= 1e-10


def test_weights_and_buffers_are_inputs_so_later_changes_are_seen():
    model, x = Force(), points()
    fast = gc.verified_compile(model, x, backend="aot_eager")
    with torch.no_grad():
        model.net[0].weight.mul_(2)
    model.shift = torch.tensor(7.0, dtype=torch.float64)
    torch.testing.assert_close(fast(x)["energy"], model(x)["energy"])


def test_new_sizes_are_proven_before_they_are_answered():
    model = Force()
    fast = gc.verified_compile(model, points(4), backend="none")
    assert_same_training(fast, model, points(6))
    fast(points(6))
    assert len(fast.proofs) == 2


def test_one_dynamic_graph_serves_sizes_that_were_equal_in_the_example():
    model = Force()
    fast = gc.verified_compile(model, points(3), backend="aot_eager", dynamic=True)
    for count in (4, 7):
        assert_same_training(fast, model, points(count))
    assert len({id(compiled) for compiled in fast._proven.values()}) == 1


def test_eval_mode_is_another_graph_than_train_mode():
    model, x = Force(), points()
    fast = gc.verified_compile(model, x, backend="none")
    assert fast(x)["force"].requires_grad
    model.eval()
    assert not fast(x)["force"].requires_grad


def test_a_method_and_a_closure_are_lifted_with_the_modules_they_use():
    model, x = Force(), points()
    for target in (model.forward, lambda x: model(x)):
        fast = gc.verified_compile(target, x, backend="none")
        with torch.no_grad():
            model.net[0].bias.add_(1)
        assert_same_training(fast, model, x)


class RoundsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_gradient_that_tracing_cannot_keep_is_refused_with_the_table():
    class Quantised(nn.Linear):
        def forward(self, x):
            return RoundsBackward.apply(super().forward(x))

    with pytest.raises(NotEquivalent, match=r"output: 0/2 parameters.*first weight") as refused:
        gc.verified_compile(Quantised(3, 2), torch.randn(4, 3), backend="none")
    assert refused.value.report.terms[0].lost == ("weight", "bias")


def test_a_backend_that_changes_values_is_refused():
    def off_by_a_little(graph, _inputs):
        return lambda *args: [out * 1.001 if out.is_floating_point() else out for out in graph(*args)]

    with pytest.raises(NotEquivalent, match="not handed out"):
        gc.verified_compile(nn.Linear(3, 1).double(), points(), backend=off_by_a_little)


def test_a_backend_that_raises_is_refused_with_its_error():
    def broken(graph, _inputs):
        raise ValueError("no such unit")

    with pytest.raises(NotEquivalent, match="no such unit"):
        gc.verified_compile(nn.Linear(3, 1), torch.randn(2, 3), backend=broken)


def test_batch_norm_statistics_and_random_streams_are_as_if_nothing_was_proven():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).double()
    x, before, stream = points(8), model[1].running_mean.clone(), torch.get_rng_state()
    fast = gc.verified_compile(model, x, backend="aot_eager")
    assert torch.equal(model[1].running_mean, before)
    assert torch.equal(torch.get_rng_state(), stream)
    fast(x)
    assert model[1].num_batches_tracked == 1


def test_own_terms_are_what_is_proven():
    model = Force()
    fast = gc.verified_compile(
        model, points(), terms={"size": lambda out: out["force"].square().mean()}, backend="none"
    )
    assert [gap.term for gap in fast.proofs[0].terms] == ["size"]
