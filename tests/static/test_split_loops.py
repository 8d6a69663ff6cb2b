"""Loops as real projects write them: split over helpers, methods, closures and wrappers."""

from __future__ import annotations

from tests.static.reading import only_tape, spelled, tapes

ONE_PASS = "epoch " + "batch zero_grad backward step " * 4 + "epoch-end"


def test_helpers_are_followed_to_the_line_that_acts():
    tape = only_tape(
        """
        import torch
        from torch.nn import functional as F

        def loss_of(model, batch):
            inputs, targets = batch
            return F.cross_entropy(model(inputs), targets)

        def update(optimizer, loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        def main():
            model = torch.nn.Linear(4, 2)
            optimizer = torch.optim.AdamW(model.parameters())
            for batch in loader:
                update(optimizer, loss_of(model, batch))

        if __name__ == "__main__":
            main()
        """
    )
    assert spelled(tape) == ONE_PASS
    (step,) = {event.where for event in tape.events if event.kind == "step"}
    assert (step.line, step.function) == (12, "update")


def test_a_trainer_class_binds_in_init_what_its_methods_use():
    tape = only_tape(
        """
        import torch

        class Trainer:
            def __init__(self, model, loader):
                self.model, self.loader = model, loader
                self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def step(self, batch):
                self.optimizer.zero_grad()
                self.model(batch).mean().backward()
                self.optimizer.step()

            def fit(self):
                for batch in self.loader:
                    self.step(batch)
        """
    )
    assert spelled(tape) == ONE_PASS
    (optimizer,) = tape.optimizers
    assert tape.actors[optimizer].name == "self.optimizer"


def test_an_optimizer_left_none_in_init_is_one_that_a_setter_fills():
    tape = only_tape(
        """
        class Learner:
            def __init__(self, model):
                self.model = model
                self.optimizer = None

            def set_optimizer(self, optimizer):
                self.optimizer = optimizer

            def fit(self, loader):
                for batch in loader:
                    self.optimizer.zero_grad()
                    self.model(batch).mean().backward()
                    self.optimizer.step()
        """
    )
    assert spelled(tape) == ONE_PASS


def test_a_closure_given_to_step_runs_before_the_update():
    tape = only_tape(
        """
        import torch
        optimizer = torch.optim.LBFGS(model.parameters())
        for x in loader:
            def closure():
                optimizer.zero_grad()
                loss = model(x).mean()
                loss.backward()
                return loss
            optimizer.step(closure)
        """
    )
    assert spelled(tape) == ONE_PASS


def test_a_callable_object_is_entered_where_it_is_called():
    tape = only_tape(
        """
        class Backprop:
            def __init__(self, optimizer):
                self.optimizer = optimizer

            def __call__(self, loss):
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

        def train(model, optimizer, loader):
            backprop = Backprop(optimizer)
            for x in loader:
                backprop(model(x).mean())
        """
    )
    assert spelled(tape) == ONE_PASS


def test_two_optimizers_each_see_the_losses_that_reach_their_model():
    tape = only_tape(
        """
        import torch
        from torch import nn
        generator, discriminator = nn.Linear(8, 4), nn.Linear(4, 1)
        opt_g = torch.optim.Adam(generator.parameters())
        opt_d = torch.optim.Adam(discriminator.parameters())
        criterion = nn.BCEWithLogitsLoss()
        for real in loader:
            fake = generator(torch.randn(16, 8))
            opt_d.zero_grad()
            d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()
            opt_g.zero_grad()
            g_loss = criterion(discriminator(fake), ones)
            g_loss.backward()
            opt_g.step()
        """
    )
    assert spelled(tape, names=True).split(" batch ")[1] == (
        "zero_grad(opt_d) backward(opt_d) step(opt_d) zero_grad(opt_g) backward(opt_d,opt_g) step(opt_g)"
    )


def test_optimizers_in_a_list_are_the_ones_that_were_put_there():
    tape = only_tape(
        """
        import torch
        optimizers = [torch.optim.Adam(encoder.parameters()), torch.optim.SGD(decoder.parameters(), lr=0.1)]
        for x in loader:
            for optimizer in optimizers:
                optimizer.zero_grad()
            decoder(encoder(x)).mean().backward()
            for optimizer in optimizers:
                optimizer.step()
        """
    )
    assert spelled(tape).startswith("epoch batch zero_grad zero_grad backward step step")
    assert len(tape.optimizers) == 2


def test_a_call_into_another_file_opens_the_tape_for_the_optimizer_it_gets():
    tape = only_tape(
        """
        import torch
        from project.engine import advance
        optimizer = torch.optim.Adam(model.parameters())
        for x in loader:
            loss = model(x).mean()
            loss.backward()
            advance(optimizer)
        """
    )
    assert "backward unknown-call batch" in spelled(tape)


def test_logging_and_saving_do_not_open_the_tape():
    tape = only_tape(
        """
        import logging, torch
        from project.tools import log_metrics, save_checkpoint
        optimizer = torch.optim.Adam(model.parameters())
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            optimizer.step()
            logging.info("loss %s", loss)
            log_metrics(loss, optimizer)
            save_checkpoint(model, optimizer)
        """
    )
    assert spelled(tape) == ONE_PASS


def test_control_flow_leaves_where_python_would():
    (paths,) = tapes(
        """
        import torch

        def train(model, optimizer, loader, limit):
            for step, x in enumerate(loader):
                if x is None:
                    continue
                try:
                    model(x).mean().backward()
                finally:
                    optimizer.step()
                if step > limit:
                    break
                optimizer.zero_grad()
        """
    )
    assert {spelled(tape) for tape in paths} == {
        "epoch " + "batch backward step zero_grad " * 3 + "batch backward step",
        "epoch " + "batch backward step zero_grad " * 4 + "epoch-end",
    }, "the path that always continues shows nothing"


def test_an_optimizer_is_made_by_whatever_is_given_parameters_and_returns_one():
    tape = only_tape(
        """
        import hydra
        from einops import rearrange

        model = hydra.utils.instantiate(cfg.model)
        optimizer = hydra.utils.instantiate(cfg.optimizer, model.parameters())
        for x, y in loader:
            loss = criterion(model(x), y)
            loss = rearrange(loss, "b t -> (b t)").mean()
            loss.backward()
            optimizer.step()
        """
    )
    assert spelled(tape) == "epoch " + "batch backward step " * 4 + "epoch-end"
    (optimizer,) = tape.optimizers
    assert tape.actors[optimizer].built is not None
