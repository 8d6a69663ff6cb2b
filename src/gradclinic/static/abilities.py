"""What running a piece of code may do, told before it is walked."""

from __future__ import annotations

from functools import lru_cache

from gradclinic.frozen import frozen
from gradclinic.static import words


class Can:
    """What running a piece of code may do: bits of an int, since an enum's own are slow to combine."""

    NOTHING = 0
    ACT = 1
    """Leave an event that matters on the tape."""
    LEAVE = 2
    """break, continue or return."""
    BACKWARD = 4
    STEP = 8
    FETCH = 16
    """Ask for the next batch by a call."""
    GUARD = 32
    """Do something every k-th time."""
    STOP = 64
    """raise, or exit the program."""
    FREEZE = 128
    """Change which parameters require a gradient."""
    TELL = 256
    """Leave an event by itself worth a tape: a tape of mere constructions and `zero_grad` shows nothing."""
    MODE = 512
    """Set the mode of a model, which is worth a tape where something trains."""


ACTS = {
    "backward": Can.BACKWARD | Can.TELL,
    "manual_backward": Can.BACKWARD | Can.TELL,
    "step": Can.STEP | Can.TELL,
    "manual_step": Can.STEP | Can.TELL,
    "optimizer_step": Can.STEP | Can.TELL,
    "zero_grad": Can.NOTHING,
    "unscale_": Can.TELL,
    "scale_loss": Can.NOTHING,
    "prepare": Can.NOTHING,
    "initialize": Can.NOTHING,
    "accumulate": Can.GUARD,
    "sync_gradients": Can.GUARD,
    "train": Can.MODE,
    "eval": Can.MODE,
    "grad": Can.NOTHING,
    "_grad": Can.NOTHING,
    "clip_master_grads": Can.TELL,
    "register_step_pre_hook": Can.NOTHING,
    "register_step_post_hook": Can.NOTHING,
    "register_optimizer_step_pre_hook": Can.NOTHING,
    "register_optimizer_step_post_hook": Can.NOTHING,
    "register_forward_pre_hook": Can.NOTHING,
}
"""What calls by these names may do."""


@frozen
class Named:
    """What a call by a certain name may do, whatever it is called on."""

    can: int
    scales: bool
    """Given a loss and an optimizer it may do all that a scaler does."""
    calls_out: bool
    """It might do more than its name says."""


@lru_cache(maxsize=4096)
def named(called: str) -> Named:
    """Remembered: a project calls the same names over and over."""
    can, scales = Can.NOTHING, False
    if called in ACTS:
        can |= Can.ACT | ACTS[called]
    elif called in words.CLIPS:
        can |= Can.ACT | Can.TELL
    elif (
        called in words.TORCH_OPTIMIZERS
        or called in words.GRAD_SCALERS
        or called in words.TORCH_SCHEDULES
        or words.SCHEDULE_BUILDERS.match(called)
    ):
        can |= Can.ACT
    else:
        scales = words.SCALER_NAME.search(called) is not None
    if words.FETCH_FUNCTION.match(called):
        can |= Can.FETCH
    if words.AVERAGES_GRADIENTS.search(called) or words.FILLS_GRADIENTS.search(called):
        can |= Can.ACT
    # To encode is harmless; what is called `encoder` is a model, and calling it is an event.
    runs = words.MODEL_NAME.search(called) is not None
    harmless = called in words.PURE or (words.harmless_for_model(called) and not runs)
    switches = words.SETS_MODE.search(called) or words.TOGGLES_GRADIENTS.search(called)
    return Named(can, scales, not harmless or switches is not None)


@frozen
class Branches:
    """What is plain about an `if` before its condition is looked at."""

    stops: bool
    """Its body ends the program and does nothing else."""
    else_stops: bool
    can: int
    """What either branch may do."""
    casts: bool
    """Either gives a name its value that stands for an optimizer, a scaler or a schedule."""
    finite: bool | None = None
    """How a question whether numbers are finite is answered where they are; None for any other."""
    resumes: bool = False
    """Its body passes over batches that a run before has trained on."""
