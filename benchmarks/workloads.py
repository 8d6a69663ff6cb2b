"""The three models every benchmark here trains: a transformer, a very deep MLP and a convolutional net."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    build: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        return self.build()

    @staticmethod
    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        inputs, targets = batch
        return nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attention(self.before_attention(x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
        query, key, value = parts.unbind(2)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).flatten(-2))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 4096, width: int = 256, layers: int = 6, length: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads=8) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.branch(x))


def deep_mlp() -> nn.Module:
    layers = [module for _ in range(99) for module in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def small_resnet() -> nn.Module:
    stages = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()]
    for width in (16, 32, 64):
        stages += [Residual(width), Residual(width)]
        if width < 64:
            stages.append(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1))
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


W1 = Workload(
    "W1",
    "GPT, 6 layers, 7 M parameters, batch 4×128",
    GPT,
    lambda: (torch.randint(4096, (4, 128)), torch.randint(4096, (4, 128))),
)
W2 = Workload(
    "W2",
    "MLP, 100 layers of width 64, batch 64",
    deep_mlp,
    lambda: (torch.randn(64, 64), torch.randint(10, (64,))),
)
W3 = Workload(
    "W3",
    "ResNet, 6 blocks, batch 16 of 32×32",
    small_resnet,
    lambda: (torch.randn(16, 3, 32, 32), torch.randint(10, (16,))),
)
WORKLOADS = (W1, W2, W3)
