"""Trainings in several phases, each with an optimizer of its own and all of them with one scaler."""

from __future__ import annotations

from tests.static.reading import TORCH, marked, told

PHASES = """
class Trainer:
    def fit(self, loader):
        scaler = torch.cuda.amp.GradScaler()
        self.model.freeze_backbone()
        optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, self.model.parameters()), lr=1e-3)
        self.epoch(loader, optimizer, scaler)
        self.model.unfreeze_backbone()
        optimizer = torch.optim.AdamW(
            [{{"params": self.model.backbone.parameters(), "lr": 1e-5}},
             {{"params": self.model.head.parameters(), "lr": 1e-4}}]
        )
        self.epoch(loader, optimizer, scaler)

    def epoch(self, loader, optimizer, scaler):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(self.model(x), y)
            scaler.scale(loss).backward()
            {unscale}
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0){mark}
            scaler.step(optimizer)
            scaler.update()
"""


def test_what_the_first_phase_unscales_is_none_of_the_seconds() -> None:
    source = TORCH + PHASES.format(unscale="scaler.unscale_(optimizer)", mark="")
    assert told(source) == set()


def test_what_neither_unscales_is_told() -> None:
    source = TORCH + PHASES.format(unscale="pass", mark="  # GC501")
    assert told(source) == marked(source)


LATE = """
def epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC109

def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epoch(model, loader, optimizer)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    epoch(model, loader, optimizer)
"""


def test_a_clip_after_the_step_is_one_in_each_phase() -> None:
    assert told(TORCH + LATE) == marked(TORCH + LATE)


EARLY = LATE.replace(
    """        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC109
""",
    """        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
""",
)


def test_a_clip_before_it_is_right_in_each() -> None:
    assert told(TORCH + EARLY) == set()
