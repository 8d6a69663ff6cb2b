"""Scalers that a setting switches on: what they do happens where the setting says so, and nowhere else."""

from __future__ import annotations

import pytest

from gradclinic.engine import judge
from gradclinic.static import observe_source
from tests.static.reading import TORCH, marked, told

LOOP = """
def train(model, loader, args, dtype, use_amp):
    optimizer = torch.optim.AdamW(model.parameters())
    {built}
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled={on}):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
{update}
"""

SWITCHES = {
    "an option": ("scaler = torch.amp.GradScaler(enabled=args.amp)", "args.amp"),
    "a parameter": ("scaler = torch.cuda.amp.GradScaler(enabled=use_amp)", "use_amp"),
    "its opposite": ("scaler = torch.amp.GradScaler(enabled=not args.full)", "not args.full"),
    "a precision": (
        "scaler = torch.amp.GradScaler(enabled=(dtype == torch.float16))",
        "dtype == torch.float16",
    ),
    "a word": ("on = args.precision == 'fp16'; scaler = torch.amp.GradScaler(enabled=on)", "on"),
    "two": ("scaler = torch.amp.GradScaler(enabled=args.amp and args.gpu)", "args.amp and args.gpu"),
    "a dictionary": ("scaler = torch.amp.GradScaler(enabled=args.get('amp', False))", "args.get('amp')"),
    "a lookup": ('scaler = torch.amp.GradScaler(enabled=args["amp"])', 'args["amp"]'),
    "a lookup in a part": (
        'scaler = torch.amp.GradScaler(enabled=args["train"]["amp"])',
        'args["train"]["amp"]',
    ),
    "a choice": (
        "half = torch.half if args.half else None; scaler = torch.amp.GradScaler(enabled=half is not None)",
        "args.half",
    ),
    "a flag set": (
        "on = True if args.half else False; scaler = torch.amp.GradScaler(enabled=on)",
        "args.half",
    ),
    "the scaler": ("scaler = torch.amp.GradScaler()", "scaler.is_enabled()"),
    "the scaler of an option": ("scaler = torch.amp.GradScaler(enabled=args.amp)", "scaler.is_enabled()"),
}

RIGHT = {
    "unscales where it scales": """
        if {on}:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
    "clips where it does not": """
        if not ({on}):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
    "steps for itself where it does not": """
        if {on}:
            scaler.step(optimizer)
            scaler.update()
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
""",
    "updates where it scales": """
        scaler.step(optimizer)
        if {on}:
            scaler.update()
""",
}

WRONG = {
    "clips": """
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
        if {on}:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
""",
    "unscales where there is no scale": """
        if not ({on}):
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # GC501
        scaler.step(optimizer)
        scaler.update()
""",
    "steps for itself where it scales": """
        if {on}:
            optimizer.step()  # GC503
        else:
            scaler.step(optimizer)
            scaler.update()
""",
    "steps for itself": """
        if {on}:
            print(scaler.get_scale())
            model.train()
        optimizer.step()  # GC503
""",
    "updates where there is no scale": """
        scaler.step(optimizer)  # GC504
        if not ({on}):
            scaler.update()
""",
}


def program(switch: str, update: str) -> str:
    built, on = SWITCHES[switch]
    return TORCH + LOOP.format(built=built, on=on, update=update.strip("\n").format(on=on))


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("way", RIGHT)
def test_what_is_off_scales_nothing(switch: str, way: str) -> None:
    assert told(program(switch, RIGHT[way])) == set()


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("way", WRONG)
def test_what_is_on_does(switch: str, way: str) -> None:
    source = program(switch, WRONG[way])
    assert told(source) == marked(source)


OF_A_CLASS = """
class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.cfg.amp)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.update()

    def update(self):
        if self.cfg.amp:
            {scaled}
        else:
            self.optimizer.step()
"""


def test_a_setting_of_a_class_is_one_wherever_it_is_asked() -> None:
    right = OF_A_CLASS.format(scaled="self.scaler.step(self.optimizer); self.scaler.update()")
    wrong = OF_A_CLASS.format(scaled="self.optimizer.step()  # GC503")
    assert told(TORCH + right) == set()
    assert told(TORCH + wrong) == marked(TORCH + wrong)


UNDER_A_CAST = """
def train(model, loader, optimizer, use_amp):
    scaler = torch.amp.GradScaler(enabled=use_amp)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=use_amp):
            loss = F.cross_entropy(model(x), y)
            if {asked}:
                loss.backward()
        if {otherwise}:
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(
    ("asked", "otherwise", "codes"),
    [("not use_amp", "use_amp", set()), ("use_amp", "not use_amp", {"GC509"})],
)
def test_a_cast_that_is_off_casts_nothing(asked: str, otherwise: str, codes: set[str]) -> None:
    source = TORCH + UNDER_A_CAST.format(asked=asked, otherwise=otherwise)
    found = {finding.code for finding in judge([observe_source(source, "train.py")])}
    assert found & {"GC509"} == codes


def test_a_path_on_which_it_is_off_says_nothing_of_the_others() -> None:
    within = """
def train(model, loader, optimizer, args):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=args.amp):
            F.cross_entropy(model(x), y).backward()
        if args.amp:
            optimizer.step()
        else:
            model.train()
            optimizer.step()
"""
    found = {finding.code for finding in judge([observe_source(TORCH + within, "train.py")])}
    assert found == {"GC509"}
