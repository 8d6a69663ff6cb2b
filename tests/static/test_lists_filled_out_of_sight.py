"""Loops over lists that seem to be empty: they were filled in ways that are not followed."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

PROGRAM = """
def discover(folder):
    files = []
    if not folder.exists():
        return files
    for city in sorted(folder.iterdir()):
        if not city.is_dir():
            continue
        for path in sorted(city.glob("*.png")):
            found = None
            for name in (path.stem, path.stem + "_left"):
                candidate = folder / f"{{name}}.npy"
                if candidate.exists():
                    found = candidate
                    break
            if found is not None:
                files.append((path, found))
    return files

def main(args):
    train_files = discover(args.train)
    val_files = discover(args.val)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        model.train()
        for image, label in train_files:
            x, y = load(image), load(label)
            if y.sum() < 100:
                continue
            {clear}
            loss = F.cross_entropy(model(x), y)
            loss.backward(){first}
            optimizer.step()
        model.eval()
        total = 0.0
        {context}:
            for image, label in val_files:
                x, y = load(image), load(label)
                if y.sum() < 100:
                    continue
                total += F.cross_entropy(model(x), y).item(){second}
"""
CLEARS = "optimizer.zero_grad()"


@pytest.mark.parametrize(
    ("clear", "context", "first", "second"),
    [
        (CLEARS, "with torch.no_grad()", "", ""),
        (CLEARS, "if True", "", "  # GC703"),
        ("pass", "with torch.no_grad()", "  # GC101", ""),
    ],
)
def test_samples_that_helpers_have_found(clear: str, context: str, first: str, second: str) -> None:
    source = TORCH + PROGRAM.format(clear=clear, context=context, first=first, second=second)
    assert told(source) == marked(source)


PARTS = """
def make(args):
    schedules, extra_losses, hooks = [], [], []
    return schedules, extra_losses, hooks

def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedules, extra_losses, hooks = make(args)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        for extra_loss in extra_losses:
            extra_loss.backward()
        for hook in hooks:
            hook(model)
        optimizer.step()
        for schedule in schedules:
            schedule.step()
"""


def test_parts_of_the_training_that_are_not_there() -> None:
    assert told(TORCH + PARTS) == set()
