"""Six kinds of training, healthy; each test makes its own of them sick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gradclinic import Case


def adam(params: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(params, lr=1e-2)


def classes(outputs: Tensor, batch: Any) -> Tensor:
    return functional.cross_entropy(outputs, batch[1])


def labelled(*shape: int, samples: int = 12, count: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(samples, *shape), torch.arange(samples) % count


def mlp() -> Case:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
    return Case(model, labelled(6), classes, optimizer=adam)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.head = nn.Linear(64, 4)

    def features(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.norm(self.conv(images)))
        return functional.adaptive_avg_pool2d(hidden, 2).flatten(1)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.head(self.features(images))
        return out


def cnn(model: type[ConvNet] = ConvNet) -> Case:
    torch.manual_seed(0)
    return Case(model(), labelled(3, 8, 8), classes, optimizer=adam)


class LanguageModel(nn.Module):
    def __init__(self, batch_first: bool = True, width: int = 32) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(20, width), nn.Embedding(10, width)
        self.block = nn.TransformerEncoderLayer(width, 4, 64, batch_first=batch_first)
        self.head = nn.Linear(width, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embed(tokens) + self.place.weight
        out: Tensor = self.head(self.block(hidden))
        return out


def next_token(outputs: Tensor, batch: Any) -> Tensor:
    return functional.cross_entropy(outputs.transpose(1, 2), batch[1], ignore_index=-100)


def padded(samples: int = 8, even: bool = False) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(1, 20, (samples, 10))
    labels = tokens.roll(-1, 1)
    for row in range(samples):
        labels[row, (7 if even else 10 - row) :] = -100
    return tokens, labels


def language_model(even: bool = True, **options: Any) -> Case:
    torch.manual_seed(0)
    return Case(LanguageModel(**options), padded(even=even), next_token, optimizer=adam)


class Recurrent(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(5, 24, batch_first=batch_first), nn.Linear(24, 4)

    def forward(self, series: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(series)[0][:, -1])
        return out


def rnn(**options: Any) -> Case:
    torch.manual_seed(0)
    return Case(Recurrent(**options), labelled(7, 5), classes, optimizer=adam)


def gan(generator: nn.Module | None = None) -> Case:
    torch.manual_seed(0)
    generator = generator or nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6))
    critic = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def fooled(made: Tensor, batch: Any) -> Tensor:
        return functional.binary_cross_entropy_with_logits(critic(made), torch.ones(len(made), 1))

    return Case(generator, torch.randn(12, 8), fooled, optimizer=adam)


def forces(create_graph: bool = True) -> Case:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))

    def energy_and_forces(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        positions = batch[0].clone().requires_grad_()
        energy = model(positions)
        (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=create_graph, retain_graph=True)
        return energy, -slope

    return Case(
        model,
        (torch.randn(6, 3), torch.randn(6, 1), torch.randn(6, 3)),
        terms={
            "energy": lambda out, batch: functional.mse_loss(out[0], batch[1]),
            "force": lambda out, batch: functional.mse_loss(out[1], batch[2]),
        },
        forward=energy_and_forces,
        optimizer=adam,
    )


HEALTHY: dict[str, Callable[[], Case]] = {
    "MLP": mlp,
    "CNN with batch-norm": cnn,
    "transformer LM with padding": language_model,
    "RNN": rnn,
    "GAN generator": gan,
    "second-order loss": forces,
}
