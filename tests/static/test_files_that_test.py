"""Files of tests are no training; what merely has such a name may well be one."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH


@pytest.mark.parametrize(
    ("path", "codes"),
    [("train_and_test.py", {"GC209"}), ("tests/loops.py", set()), ("test_loop.py", {"GC209"})],
)
def test_a_name_that_speaks_of_testing_makes_no_test(path: str, codes: set[str]) -> None:
    source = TORCH + dedent(
        """
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward(retain_graph=True)
            optimizer.step()
        """
    )
    assert {finding.code for finding in judge([observe_source(source, path)])} == codes
    tested = source + "\ndef test_it():\n    assert model(torch.ones(1, 4)).shape == (1, 1)\n"
    found = {finding.code for finding in judge([observe_source(tested, path)])}
    assert "GC209" not in found


def test_what_a_test_gives_to_a_loss_is_made_up() -> None:
    source = TORCH + dedent(
        """
        def test_clipping():
            model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
            loss = F.cross_entropy(model(torch.rand(2, 4)), torch.tensor([0, 1]))
            loss.backward()
            assert clip(model) > 0
        """
    )
    assert {finding.code for finding in judge([observe_source(source, "test_clipping.py")])} == set()
    assert "GC401" in {finding.code for finding in judge([observe_source(source, "clipping.py")])}


@pytest.mark.parametrize(
    ("test", "codes"),
    [
        ("class LoopTest(unittest.TestCase):\n    def testLoop(self):", set()),
        ("def testLoop():\n    if True:", set()),
        ("def test_epoch(model, loader):\n    if True:", {"GC401"}),
    ],
)
def test_who_is_called_with_nothing_or_by_a_framework_tests(test: str, codes: set[str]) -> None:
    source = TORCH + f"""
import unittest as framework

{test}
        model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
        F.cross_entropy(model(torch.rand(2, 4)), torch.tensor([0, 1])).backward()
"""
    source = source.replace("import unittest as framework\n", "") if codes else source
    assert {finding.code for finding in judge([observe_source(source, "train_test.py")])} - {"GC410"} == codes
