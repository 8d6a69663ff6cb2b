"""Labels weighted by a softmax are probabilities, and no scores for a cross-entropy."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

MATCHING = """
class Matching(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, support, labels_one_hot, labels, query, wanted):
        similar = self.embed(query) @ self.embed(support).t()
        attention = {attention}
        scores = {scores}
        loss = {loss}{mark}
        return loss

model = Matching()
optimizer = torch.optim.Adam(model.parameters())
for batch in loader:
    loss = model(*batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SOFTMAX = "torch.softmax(similar, dim=-1)"
CROSS_ENTROPY = "F.cross_entropy(scores, wanted)"


def matching(scores: str, attention: str = SOFTMAX, loss: str = CROSS_ENTROPY, mark: str = "") -> str:
    return TORCH + MATCHING.format(scores=scores, attention=attention, loss=loss, mark=mark)


FAULTY = {
    "of one hot": matching("attention @ labels_one_hot", mark="  # GC401"),
    "by bmm": matching("attention.unsqueeze(1).bmm(labels_one_hot).squeeze(1)", mark="  # GC401"),
    "made so on the spot": matching("attention @ F.one_hot(labels, 3).float()", mark="  # GC401"),
}
RIGHT = {
    "their logarithm": matching(
        "attention @ labels_one_hot", loss="F.nll_loss((scores + 1e-8).log(), wanted)"
    ),
    "scores of them": matching("similar @ labels_one_hot"),
    "values that are attended to": matching("self.head(attention @ self.embed(support))"),
    "values of which nothing is known": matching("attention @ labels"),
}


@pytest.mark.parametrize("source", FAULTY.values(), ids=FAULTY)
def test_probabilities_are_told(source: str) -> None:
    assert told(source) == marked(source) != set()


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_scores_and_logarithms_are_not(source: str) -> None:
    assert told(source) == set()
