"""Graphs that are put into a record and given back: whoever gets it may go backward through them again."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, told

RECORD = """
import dataclasses
from project import ActorLoss, Base

@dataclasses.dataclass(frozen=True)
class OwnLoss(ActorLoss):
    penalty: torch.Tensor

class Learner(Base):
    def compute_loss(self, batch):
        loss = super().compute_loss(batch)
        penalty = self.PARTS.net(batch).mean()
        self.update(penalty)
        return OwnLoss(actor_loss=loss.actor_loss + penalty, penalty=penalty)

    def update(self, penalty):
        self.PARTS.optimizer.zero_grad()
        loss = -penalty
        loss.backward(retain_graph=True)
        self.PARTS.optimizer.step()
"""


@pytest.mark.parametrize("parts", ["_modules", "parts"])
@pytest.mark.parametrize("base", ["(ActorLoss)", ""])
def test_a_penalty_goes_into_a_record_beside_its_own_update(parts: str, base: str) -> None:
    """A class of the project may call anything `_modules`, and is no module of torch by that."""
    assert told(TORCH + RECORD.replace("PARTS", parts).replace("(ActorLoss)", base)) == set()


def test_a_penalty_that_only_its_own_update_uses_is_told() -> None:
    program = RECORD.replace("PARTS", "parts").replace("self.parts.net(batch)", "model(batch)")
    program = program.replace(
        "return OwnLoss(actor_loss=loss.actor_loss + penalty, penalty=penalty)", "return loss.actor_loss"
    )
    assert {code for code, _ in told(f"{TORCH}model = nn.Linear(4, 1)\n{program}")} == {"GC209"}
