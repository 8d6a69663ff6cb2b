"""Schedules that `configure_optimizers` gives back, and the interval that it asks for."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, told

MODULE = """
import lightning.pytorch as pl
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, StepLR
from transformers import get_linear_schedule_with_warmup

class Module(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.model(batch).loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        {more}
        schedule = {schedule}
        {back}
"""
IN_UPDATES = [
    ("pass", "OneCycleLR(optimizer, 0.1, total_steps=self.trainer.estimated_stepping_batches)"),
    ("pass", "OneCycleLR(optimizer, 0.1, epochs=9, steps_per_epoch=self.batches)"),
    ("total_steps = len(self.train_loader) * self.epochs", "CosineAnnealingLR(optimizer, T_max=total_steps)"),
    ("pass", "get_linear_schedule_with_warmup(optimizer, 100, self.hparams.num_training_steps)"),
]
IN_EPOCHS = [
    ("pass", "CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)"),
    ("epochs = self.hparams.epochs", "CosineAnnealingLR(optimizer, epochs, eta_min=1e-6)"),
]
IN_NOBODY_KNOWS_WHAT = [
    ("pass", "CosineAnnealingLR(optimizer, T_max=self.hparams.t_max)"),
    ("pass", "CosineAnnealingLR(optimizer, T_max=1000)"),
    ("pass", "StepLR(optimizer, 30)"),
    ("pass", "CosineAnnealingLR(optimizer, **self.hparams.schedule)"),
    ("pass", "LinearLR(optimizer, total_iters=self.hparams.epochs * self.hparams.repeats_per_epoch)"),
]
BY_EPOCH = [
    "return [optimizer], [schedule]",
    'return {"optimizer": optimizer, "lr_scheduler": schedule}',
    'return [optimizer], [{"scheduler": schedule, "interval": "epoch"}]',
    'return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "loss"}}',
]
BY_STEP = [
    'return [optimizer], [{"scheduler": schedule, "interval": "step"}]',
    'return {"lr_scheduler": {"scheduler": schedule, "interval": "step", "frequency": 1}}',
    'config = {"scheduler": schedule, "interval": "step"}\n        return [optimizer], [config]',
]
BY_NOBODY_KNOWS_WHAT = [
    "return optimizer",
    'return [optimizer], [{"scheduler": schedule, "interval": self.interval}]',
    'return [optimizer], [{"scheduler": schedule, "interval": "step", "frequency": 100}]',
    'return [optimizer], [{"scheduler": schedule, **self.config}]',
    'kept = {"scheduler": schedule}\n        kept["interval"] = pace\n        return [optimizer], [kept]',
]


def codes(made: tuple[str, str], back: str) -> set[str]:
    more, schedule = made
    return {code for code, _ in told(TORCH + MODULE.format(more=more, schedule=schedule, back=back))}


@pytest.mark.parametrize("back", BY_EPOCH)
@pytest.mark.parametrize("made", IN_UPDATES)
def test_what_is_sized_in_updates_is_advanced_by_steps(made: tuple[str, str], back: str) -> None:
    assert codes(made, back) == {"GC113"}


@pytest.mark.parametrize("back", BY_STEP)
@pytest.mark.parametrize("made", IN_EPOCHS)
def test_what_is_sized_in_epochs_is_advanced_by_epochs(made: tuple[str, str], back: str) -> None:
    assert codes(made, back) == {"GC113"}


@pytest.mark.parametrize("made", IN_UPDATES + IN_NOBODY_KNOWS_WHAT)
@pytest.mark.parametrize("back", BY_STEP + BY_NOBODY_KNOWS_WHAT)
def test_by_steps_it_is_right(made: tuple[str, str], back: str) -> None:
    assert codes(made, back) == set()


@pytest.mark.parametrize("made", IN_EPOCHS + IN_NOBODY_KNOWS_WHAT)
@pytest.mark.parametrize("back", BY_EPOCH + BY_NOBODY_KNOWS_WHAT)
def test_by_epochs_it_is_right(made: tuple[str, str], back: str) -> None:
    assert codes(made, back) == set()


@pytest.mark.parametrize(
    "by_hand",
    [
        "def on_train_batch_end(self, *args):\n        self.lr_schedulers().step()",
        "def lr_scheduler_step(self, schedule, metric):\n        schedule.step()",
        "automatic_optimization = False",
    ],
)
def test_who_advances_it_himself_asks_nobody(by_hand: str) -> None:
    more, schedule = IN_UPDATES[0]
    source = MODULE.format(more=more, schedule=schedule, back=BY_EPOCH[0]) + f"\n    {by_hand}\n"
    assert "GC113" not in {code for code, _ in told(TORCH + source)}
