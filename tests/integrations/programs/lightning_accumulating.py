"""Manual optimization of two networks, then accumulation with an epoch-wise schedule: nothing is wrong."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def training_step(self, batch, _):
        (real,) = batch
        ours, theirs = self.optimizers()
        judge = nn.functional.binary_cross_entropy_with_logits
        yes, no = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = self.generator(torch.randn(len(real), 4))

        self.toggle_optimizer(theirs)
        theirs.zero_grad()
        self.manual_backward(judge(self.critic(real), yes) + judge(self.critic(fake.detach()), no))
        theirs.step()
        self.untoggle_optimizer(theirs)

        self.toggle_optimizer(ours)
        ours.zero_grad()
        self.manual_backward(judge(self.critic(fake), yes))
        ours.step()
        self.untoggle_optimizer(ours)

    def configure_optimizers(self):
        networks = (self.generator, self.critic)
        return [torch.optim.Adam(one.parameters(), 1e-3, betas=(0.5, 0.9)) for one in networks]


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.head = nn.Linear(32, 1)

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self.head(self.body(x)), y)

    def configure_optimizers(self):
        groups = [{"params": self.body.parameters(), "lr": 0.02}, {"params": self.head.parameters()}]
        optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 3)]


quiet = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
quiet |= {"enable_progress_bar": False, "accelerator": "cpu"}
L.seed_everything(2)
real = DataLoader(TensorDataset(torch.randn(640, 2) * 0.3 + 1), 64, shuffle=True)
L.Trainer(max_epochs=6, **quiet).fit(Gan(), real)

x = torch.randn(480, 6)
pairs = DataLoader(TensorDataset(x, torch.sin(x[:, :1]) + x[:, 1:2]), 20, shuffle=True)
L.Trainer(max_epochs=6, accumulate_grad_batches=4, **quiet).fit(Regressor(), pairs)
