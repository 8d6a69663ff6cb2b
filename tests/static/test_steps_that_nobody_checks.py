"""Steps on gradients that a scaler has unscaled, and that may have overflowed."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
def fit(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(){more}
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        {update}
"""
TAKEN = {
    "after a clip": """
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  # GC503
        scaler.update()
    """,
    "where the clip is a choice": """
        if args.clip > 0:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            print("norm", norm.item())
        optimizer.step()  # GC503
        scaler.update()
    """,
    "where the same is asked twice": """
        if args.amp:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if args.amp:
            optimizer.step()  # GC503
            scaler.update()
        else:
            optimizer.step()
    """,
    "without a clip": """
        scaler.unscale_(optimizer)
        optimizer.step()  # GC503
        scaler.update()
    """,
}
ASKED = {
    "is the norm finite": """
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
        scaler.update()
    """,
    "it is left out by an error": """
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        scaler.update()
    """,
    "it is left out": """
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not norm < 1e4:
            scaler.update()
            continue
        optimizer.step()
        scaler.update()
    """,
    "somebody looks at them": """
        scaler.unscale_(optimizer)
        prepare(optimizer)
        optimizer.step()
        scaler.update()
    """,
    "they are mended one by one": """
        scaler.unscale_(optimizer)
        for p in model.parameters():
            p.grad.nan_to_num_()
        optimizer.step()
        scaler.update()
    """,
    "the scaler steps": """
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    """,
    "the other way scales nothing": """
        if args.amp:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if args.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
    """,
    "a closure": """
        scaler.unscale_(optimizer)
        optimizer.step(lambda: loss)
        scaler.update()
    """,
}


def written(update: str, more: str = "") -> str:
    # The loss is scaled where the update is, or `else: optimizer.step()` were one that bypasses the scaler.
    source = TORCH + LOOP.format(update=update.strip(), more=more)
    return source.replace("scaler.scale(loss).backward()", _scaled(update))


def _scaled(update: str) -> str:
    if "else" not in update:
        return "scaler.scale(loss).backward()"
    return "(scaler.scale(loss) if args.amp else loss).backward()"


@pytest.mark.parametrize("update", TAKEN)
def test_a_step_that_nothing_can_leave_out_is_told(update: str) -> None:
    source = written(TAKEN[update])
    assert told(source) == marked(source)


@pytest.mark.parametrize("update", ASKED)
def test_one_that_somebody_has_asked_about_is_not(update: str) -> None:
    assert told(written(ASKED[update])) == set()


def test_an_optimizer_may_know_what_the_scaler_found() -> None:
    more = "\n    optimizer.found_inf = torch.zeros(1)"
    assert told(written(TAKEN["after a clip"], more)) == set()


ELSEWHERE = """
def clip(model):
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if {asks}:
        for p in model.parameters():
            p.grad = None
"""


@pytest.mark.parametrize("asks", ["torch.isnan(norm)", "not torch.isfinite(norm)"])
def test_a_helper_of_the_file_may_ask(asks: str) -> None:
    update = "scaler.unscale_(optimizer); clip(model); optimizer.step(); scaler.update()"
    source = TORCH + ELSEWHERE.format(asks=asks) + LOOP.format(more="", update=update)
    assert "GC503" not in {code for code, _ in told(source)}


@pytest.mark.parametrize("given", ['"cuda", enabled=False', "init_scale=1.0"])
def test_a_scaler_that_scales_nothing_cannot_overflow(given: str) -> None:
    source = TORCH + LOOP.format(more="", update=TAKEN["after a clip"].replace("  # GC503", ""))
    assert "GC503" not in {code for code, _ in told(source.replace("GradScaler()", f"GradScaler({given})"))}
