"""A classifier under Lightning's Trainer: `python lightning_trainer.py FAULT [--checkup]`."""

import sys

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULT = sys.argv[1]


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, _):
        if FAULT == "eval-mode":
            self.eval()
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self(x), y))

    def configure_optimizers(self):
        held = self.head if FAULT == "part" else self
        optimizer = torch.optim.AdamW(held.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=80)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


L.seed_everything(0)
x = torch.randn(512, 8)
y = (x[:, :3] + 0.1 * torch.randn(512, 3)).argmax(1)
train = DataLoader(TensorDataset(x[:448], y[:448]), 28, shuffle=True)
val = DataLoader(TensorDataset(x[448:], y[448:]), 64)
callbacks = []
if "--checkup" in sys.argv:
    from gradclinic.integrations.lightning import Checkup

    callbacks = [Checkup()]
trainer = L.Trainer(
    max_epochs=5,
    accelerator="cpu",
    gradient_clip_val=5.0,
    callbacks=callbacks,
    logger=False,
    enable_checkpointing=False,
    enable_model_summary=False,
    enable_progress_bar=False,
)
trainer.fit(Classifier(), train, val)
