"""Five small problems with noise, on which rates can be told apart: used by the table in the docs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from gradclinic import Case

Batch = tuple[Tensor, Tensor]


def _stream(seed: int, draw: Callable[[torch.Generator], Batch]) -> Callable[[], Iterator[Batch]]:
    """An endless supply of fresh batches, the same for every rate."""

    def batches() -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            yield draw(generator)

    return batches


def mlp_regression() -> Case:
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    @torch.no_grad()
    def draw(generator: torch.Generator) -> Batch:
        x = torch.randn(64, 8, generator=generator)
        return x, 3 * teacher(x) + 0.3 * torch.randn(64, 1, generator=generator)

    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return Case(
        model,
        loss=lambda out, batch: functional.mse_loss(out, batch[1]),
        optimizer=lambda params: torch.optim.AdamW(params, lr=1e-3),
        loader=_stream(1, draw),
        name="MLP, AdamW",
    )


def mlp_sgd() -> Case:
    torch.manual_seed(0)
    centres = torch.randn(10, 20)

    def draw(generator: torch.Generator) -> Batch:
        y = torch.randint(0, 10, (64,), generator=generator)
        return centres[y] + 1.5 * torch.randn(64, 20, generator=generator), y

    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    return Case(
        model,
        loss=lambda out, batch: functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9),
        loader=_stream(2, draw),
        name="MLP, SGD with momentum",
    )


def cnn_batch_norm() -> Case:
    torch.manual_seed(0)
    patterns = torch.randn(8, 3, 8, 8)

    def draw(generator: torch.Generator) -> Batch:
        y = torch.randint(0, 8, (32,), generator=generator)
        return patterns[y] + 3.0 * torch.randn(32, 3, 8, 8, generator=generator), y

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 8),
    )
    return Case(
        model,
        loss=lambda out, batch: functional.cross_entropy(out, batch[1]),
        optimizer=lambda params: torch.optim.SGD(params, lr=1e-3),
        loader=_stream(3, draw),
        name="CNN with batch-norm, SGD",
    )


class _Transformer(nn.Module):
    def __init__(self, words: int = 24, width: int = 32, length: int = 16) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens) + self.places.weight
        return self.head(self.norm(self.layer(hidden, src_mask=self.mask, is_causal=True)))


def transformer() -> Case:
    torch.manual_seed(0)
    following = torch.randn(24, 24).mul(2).softmax(1)

    def draw(generator: torch.Generator) -> Batch:
        tokens = [torch.randint(0, 24, (32,), generator=generator)]
        for _ in range(16):
            tokens.append(torch.multinomial(following[tokens[-1]], 1, generator=generator).squeeze(1))
        text = torch.stack(tokens, 1)
        return text[:, :-1], text[:, 1:]

    return Case(
        _Transformer(),
        loss=lambda out, batch: functional.cross_entropy(out.transpose(1, 2), batch[1]),
        optimizer=lambda params: torch.optim.AdamW(params, lr=1e-3),
        loader=_stream(4, draw),
        name="transformer LM, AdamW",
    )


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 32, batch_first=True), nn.Linear(32, 1)

    def forward(self, series: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(series)[0][:, -1])
        return out


def recurrent() -> Case:
    torch.manual_seed(0)

    def draw(generator: torch.Generator) -> Batch:
        x = torch.randn(32, 12, 4, generator=generator)
        y = (x[:, :, :1].cumsum(1) * 0.3).tanh()[:, -1] + x[:, -3, 1:2]
        return x, y + 0.3 * torch.randn(32, 1, generator=generator)

    return Case(
        _Recurrent(),
        loss=lambda out, batch: functional.mse_loss(out, batch[1]),
        optimizer=lambda params: torch.optim.Adam(params, lr=1e-3),
        loader=_stream(5, draw),
        name="GRU, Adam",
    )


def _with_optimizer(
    make: Callable[[], Case], name: str, optimizer: Callable[..., object]
) -> Callable[[], Case]:
    def build() -> Case:
        case = make()
        case.optimizer, case.name = optimizer, name  # type: ignore[assignment]
        return case

    build.__name__ = name
    return build


PROBLEMS = (mlp_regression, mlp_sgd, cnn_batch_norm, transformer, recurrent)

CHECKS = (
    _with_optimizer(mlp_sgd, "MLP, AdamW, classes", lambda p: torch.optim.AdamW(p, lr=1e-3)),
    _with_optimizer(mlp_regression, "MLP, SGD", lambda p: torch.optim.SGD(p, lr=1e-3)),
    _with_optimizer(
        cnn_batch_norm, "CNN, SGD with momentum", lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)
    ),
    _with_optimizer(cnn_batch_norm, "CNN, Adam", lambda p: torch.optim.Adam(p, lr=1e-3)),
    _with_optimizer(recurrent, "GRU, SGD with momentum", lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)),
)
"""The same data under other optimizers. The constants of the finder were chosen on PROBLEMS alone; trials
above the steepest descent were added after a failure here, and changed no result here for the better."""
