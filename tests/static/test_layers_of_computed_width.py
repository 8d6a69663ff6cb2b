"""Layers whose width a program computes: they are layers, and what they give has a graph."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

TWO_NETWORKS_IN_TURN = """
import numpy as np

images = np.load("images.npy")

class Critic(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.blocks = int(np.log2(size)) - 3
        self.first = nn.Conv2d(3, width, 3)
        self.last = nn.Conv2d(width * (2 ** self.blocks), 1, 3)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.pool(self.last(torch.relu(self.first(x)))).view(-1, 1)

class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        return self.layer(x)

painter, critic = Painter(), Critic(8, images.shape[-1])
of_painter = torch.optim.Adam(painter.parameters(), 1e-3)
of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
for step in range(100):
    x, real = torch.randn(4, 3, 32, 32), torch.randn(4, 3, 32, 32)
    fake = painter(x)
    loss_painter = F.mse_loss(critic(fake), torch.ones(4, 1))
    DETACH
    loss_critic = F.mse_loss(critic(fake), torch.zeros(4, 1)) + F.mse_loss(critic(real), torch.ones(4, 1))
    for optimizer, loss in zip([of_painter, of_critic], [loss_painter, loss_critic]):
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # GC209
        optimizer.step()
"""


def test_a_graph_that_two_networks_do_not_share_is_kept_for_nobody() -> None:
    source = TORCH + TWO_NETWORKS_IN_TURN.replace("DETACH", "fake = fake.detach()")
    assert told(source) == marked(source)


@pytest.mark.parametrize(
    "shared",
    ["pass", "fake = fake * 0.5", "other = fake.detach()"],
    ids=["as it is", "made of it", "another is detached"],
)
def test_a_graph_that_they_share_is_needed(shared: str) -> None:
    assert told(TORCH + TWO_NETWORKS_IN_TURN.replace("DETACH", shared)) == set()


ONE_NETWORK = """
import numpy as np

class Critic(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.blocks = int(np.log2(size)) - 3
        self.last = nn.Conv2d(width * (2 ** self.blocks), 1, 3)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.pool(self.last(x))

critic = Critic(4, 32)
optimizer = torch.optim.Adam(critic.parameters(), 1e-3)
for step in range(100):
    loss = critic(torch.randn(4, 3, 32, 32)).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # GC209
    optimizer.step()
"""


def test_a_graph_of_such_a_layer_is_one_that_may_be_kept_for_nobody() -> None:
    assert told(TORCH + ONE_NETWORK) == marked(TORCH + ONE_NETWORK)
    again = ONE_NETWORK.replace("# GC209", "\n    (loss * 2).backward()")
    assert told(TORCH + again) == set()


def test_the_loss_of_such_layers_has_a_graph() -> None:
    alone = TWO_NETWORKS_IN_TURN.replace("DETACH", "fake = fake.detach()")
    alone = alone.replace(
        "[of_critic, of_painter], [loss_critic, loss_painter]", "[of_critic], [loss_critic]"
    )
    assert told(TORCH + alone.replace("(retain_graph=True)  # GC209", "()")) == set()


OF_A_DISTRIBUTION = """
policy = nn.Linear(4, 1)
optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
for step in range(100):
    noise = torch.distributions.Normal(policy(torch.randn(8, 4)), 1.0)
    action = noise.rsample()
    first = action.pow(2).mean()
    second = noise.entropy().mean()
    optimizer.zero_grad()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
"""


def test_a_distribution_is_made_of_what_it_is_given() -> None:
    assert told(TORCH + OF_A_DISTRIBUTION) == set()
