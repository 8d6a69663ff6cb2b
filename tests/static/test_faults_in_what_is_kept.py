"""Weights, graphs and schedules that are kept wrongly, models that take another's place, clips that come too
early in a framework's hands; and the nearest programs that are right."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

FAULTY = {
    "the best state without a copy": """
        def train(model, loader, val):
            best, best_state = 0, None
            optimizer = torch.optim.Adam(model.parameters())
            for epoch in range(10):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                score = val(model)
                if score > best:
                    best = score
                    best_state = model.state_dict()  # GC713
            model.load_state_dict(best_state)
            return model
        """,
    "the best model is the model": """
        def train_epoch(model, loader, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


        def train(model, loader, optimizer, val):
            best, best_model = 0, None
            for epoch in range(10):
                train_epoch(model, loader, optimizer)
                score = val(model)
                if score > best:
                    best, best_model = score, model  # GC713
            return best_model
        """,
    "weights to begin again from": """
        def search(model, loader, rates):
            start = model.state_dict()  # GC713
            for rate in rates:
                model.load_state_dict(start)
                optimizer = torch.optim.SGD(model.parameters(), lr=rate)
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
        """,
    "a target that is the network": """
        class Agent:
            def __init__(self, net):
                self.net = net
                self.target = self.net  # GC713
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def learn(self, s, r):
                goal = r + self.target(s).detach()
                self.optimizer.zero_grad()
                F.mse_loss(self.net(s), goal).backward()
                self.optimizer.step()
                self.follow(self.net, self.target)

            def follow(self, live, slow):
                for p, q in zip(slow.parameters(), live.parameters()):
                    p.data.copy_(0.99 * p.data + 0.01 * q.data)
        """,
    "a network from a file": """
        class Agent:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def load(self, path):
                self.net = torch.load(path)  # GC302

            def learn(self, s, r):
                self.optimizer.zero_grad()
                F.mse_loss(self.net(s), r).backward()
                self.optimizer.step()


        def main(path, data):
            agent = Agent()
            agent.load(path)
            for s, r in data:
                agent.learn(s, r)
        """,
    "a model from a file, if asked for": """
        def main(args, loader):
            model = nn.Linear(3, 3)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.resume:
                model = torch.load(args.resume)  # GC302
        """
    + LOOP.replace("\n", "\n        "),
    "another decoder in the dictionary": """
        models = {"enc": nn.Linear(3, 3), "dec": nn.Linear(3, 3)}
        optimizer = torch.optim.Adam([*models["enc"].parameters(), *models["dec"].parameters()])
        models["dec"] = nn.Linear(3, 4)  # GC302
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(models["dec"](models["enc"](x)), y).backward()
            optimizer.step()
        """,
    "clipped in a training step": """
        import pytorch_lightning as pl


        class Lit(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                x, y = batch
                loss = F.cross_entropy(self.net(x), y)
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)  # GC110
                return loss
        """,
    "clipped by the project's own": """
        from transformers import Trainer


        def clip_grad_norm_(parameters, most):
            grads = [p.grad for p in parameters if p.grad is not None]
            norm = torch.norm(torch.stack([torch.norm(g) for g in grads]))
            for g in grads:
                g.detach().mul_(most / norm)
            return norm


        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                loss = model(**inputs).loss
                norm = clip_grad_norm_(model.parameters(), 1.0)  # GC110
                return loss
        """,
    "a schedule that begins again": """
        def main(args, model, loader):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
            first = 0
            if args.resume:
                state = torch.load(args.resume)
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                first = state["epoch"]
            for epoch in range(first, args.epochs):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                scheduler.step()
                state = {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({"epoch": epoch + 1, "model": model.state_dict(),  # GC710
                            "optimizer": optimizer.state_dict()}, "last.pt")
        """,
    "losses added to a list": """
        def train(model, loader, optimizer):
            losses = []
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses += [loss]  # GC212
            return losses
        """,
    "parts that are told to train": """
        class Recipe:
            def forward_backward(self, x, y, back=True):
                loss = self.loss_fn(self.model_parts[0](x), y)
                if back:
                    loss.backward()  # GC101
                return loss

            def train_step(self, x, y):
                loss = self.forward_backward(x, y)
                self.optimizer.step()

            def train(self):
                self.optimizer.zero_grad()
                while self.step < self.steps:
                    x, y = next(self.batches)
                    self.train_step(x, y)
                    self.step += 1
                    if self.step % self.every == 0:
                        self.validate()

            def validate(self):
                for m in self.model_parts:
                    m.eval()
                with torch.no_grad():
                    for x, y in self.val_loader:
                        self.forward_backward(x, y, back=False)
                for m in self.model_parts:
                    m.train()
        """,
}


@pytest.mark.parametrize("program", FAULTY.values(), ids=FAULTY)
def test_the_fault_is_named(program: str):
    source = TORCH + dedent(program)
    assert told(source) == marked(source)


RIGHT = {
    "the best state, copied": FAULTY["the best state without a copy"].replace(
        "model.state_dict()  # GC713", "copy.deepcopy(model.state_dict())"
    ),
    "the last state": FAULTY["the best state without a copy"]
    .replace("if score > best:", "if True:")
    .replace("  # GC713", ""),
    "the best of several models": """
        def search(rates, loader, val):
            best, best_model = 0, None
            for rate in rates:
                model = nn.Linear(3, 3)
                optimizer = torch.optim.SGD(model.parameters(), lr=rate)
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                score = val(model)
                if score > best:
                    best, best_model = score, model
            return best_model
        """,
    "a state that is edited": """
        def main(model, loader, path):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            state = model.state_dict()
            state.update(torch.load(path))
            model.load_state_dict(state)
        """
    + LOOP.replace("\n", "\n        "),
    "a target that is made a copy": FAULTY["a target that is the network"]
    .replace("  # GC713", "")
    .replace(
        "                self.optimizer =",
        "                self.target = copy.deepcopy(self.target)\n                self.optimizer =",
    ),
    "the weights of an average, put in and taken out": """
        def evaluate(model, average, loader, optimizer):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            kept = [p.data.clone() for p in model.parameters()]
            for p, q in zip(model.parameters(), average.parameters()):
                p.data = q.data
            for p, q in zip(model.parameters(), kept):
                p.data = q
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        """,
    "a model from a file, and its optimizer after it": """
        def main(args, loader):
            model = nn.Linear(3, 3)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.resume:
                model = torch.load(args.resume)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        """
    + LOOP.replace("\n", "\n        "),
    "a model from a file, to be looked at": """
        def main(args, loader, show):
            model = nn.Linear(3, 3)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.show:
                model = torch.load(args.show)
                show(model)
                return
        """
    + LOOP.replace("\n", "\n        "),
    "clipped by a hook": """
        import pytorch_lightning as pl


        class Lit(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                x, y = batch
                return F.cross_entropy(self.net(x), y)

            def on_before_optimizer_step(self, optimizer):
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        """,
    "clipped by hand": """
        import pytorch_lightning as pl


        class Lit(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.automatic_optimization = False

            def training_step(self, batch, batch_idx):
                x, y = batch
                optimizer = self.optimizers()
                optimizer.zero_grad()
                self.manual_backward(F.cross_entropy(self.net(x), y))
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)
                optimizer.step()
        """,
    "a schedule that catches up": FAULTY["a schedule that begins again"]
    .replace("  # GC710", "")
    .replace(
        "            for epoch in range(first",
        "            for _ in range(first):\n                scheduler.step()\n"
        "            for epoch in range(first",
    ),
    "a schedule that knows where it stands": FAULTY["a schedule that begins again"]
    .replace("  # GC710", "")
    .replace("step_size=10", "step_size=10, last_epoch=args.start - 1"),
    "a schedule that does not count": FAULTY["a schedule that begins again"]
    .replace("  # GC710", "")
    .replace("StepLR(optimizer, step_size=10)", "ExponentialLR(optimizer, 0.9)"),
    "numbers added to a list": FAULTY["losses added to a list"].replace("[loss]  # GC212", "[loss.item()]"),
}


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_the_right_program_is_left_alone(program: str):
    assert told(f"import copy\n{TORCH}{dedent(program)}") == set()
