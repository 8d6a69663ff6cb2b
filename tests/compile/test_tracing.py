"""A traced function differentiates as the eager one does: autograd's own detaches go, the user's stay."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gradclinic.compile.tracing import DETACH, trace


def force(energy: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(energy, x, create_graph=True)[0]


def plain(w, x):
    energy = (torch.tanh(torch.tanh(x @ w)) + torch.exp(torch.sigmoid(x @ w))).sum()
    return energy, force(energy, x)


def stop_gradient(w, x):
    h = torch.tanh(x @ w)
    energy = (h * torch.tanh(h).detach()).sum()
    return energy, force(energy, x)


def straight_through(w, x):
    h = torch.tanh(x @ w)
    rounded = h + (h.round() - h).detach()
    energy = (rounded * torch.sigmoid(h)).sum()
    return energy, force(energy, x)


def straight_through_of_torch(w, x):
    torch.manual_seed(1)
    h = torch.tanh(x @ w)
    energy = (nn.functional.gumbel_softmax(h, hard=True) * h).sum()
    return energy, force(energy, x)


def target_network(w, x):
    with torch.no_grad():
        target = torch.tanh(x @ (w * 0.9))
    energy = (torch.tanh(x @ w) - target).square().sum()
    return energy, force(energy, x)


def data_attribute(w, x):
    h = torch.tanh(x @ w)
    energy = (h * h.data).sum()
    return energy, force(energy, x)


def gradient_as_a_constant(w, x):
    energy = torch.tanh(x @ w).sum()
    (constant,) = torch.autograd.grad(energy, x, retain_graph=True)
    return energy, force(energy, x) * constant


KINDS = [
    plain,
    stop_gradient,
    straight_through,
    straight_through_of_torch,
    target_network,
    data_attribute,
    gradient_as_a_constant,
]


@pytest.mark.parametrize("symbolic", [False, True], ids=["real", "symbolic"])
@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__name__)
def test_every_kind_of_stopped_gradient_stays_stopped_and_no_other_is(function, symbolic):
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    graph = trace(function, (w, x), symbolic=symbolic)
    torch.manual_seed(1)
    expected = function(w, x)
    torch.manual_seed(1)
    for ours, theirs in zip(expected, graph(w, x), strict=True):
        weights = torch.rand(ours.shape, generator=generator, dtype=torch.float64)
        torch.testing.assert_close(theirs, ours, rtol=1e-12, atol=0)
        for a, b in zip(
            torch.autograd.grad((ours * weights).sum(), (w, x), retain_graph=True),
            torch.autograd.grad((theirs * weights).sum(), (w, x), retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-14)


def test_the_graph_as_make_fx_records_it_loses_the_second_derivative():
    from torch.fx.experimental.proxy_tensor import make_fx

    w = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    recorded = make_fx(plain)(w, x)
    assert any(node.target is DETACH for node in recorded.graph.nodes)
    (right,) = torch.autograd.grad(plain(w, x)[1].sum(), w)
    (wrong,) = torch.autograd.grad(recorded(w, x)[1].sum(), w)
    assert not torch.allclose(right, wrong, rtol=1e-3)


def test_only_the_users_detach_is_left_in_the_graph():
    w = torch.randn(3, 4, requires_grad=True)
    x = torch.randn(2, 3, requires_grad=True)
    for function, stops in ((plain, 0), (stop_gradient, 1)):
        graph = trace(function, (w, x))
        graph.graph.eliminate_dead_code()
        assert sum(node.target is DETACH for node in graph.graph.nodes) == stops
