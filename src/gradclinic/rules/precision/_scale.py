"""Whether gradients carry a loss scale at some moment."""

from __future__ import annotations

from gradclinic.facts import BROUGHT, Event, EventKind, Update

_TAKE_OUT = (EventKind.UNSCALE, EventKind.ZERO_GRAD, EventKind.GRAD_WRITE, EventKind.OPAQUE)


def carried_scaler(update: Update, moment: Event) -> str | None:
    """The scaler whose scale is in the gradients at `moment`, None if there is none or it is unclear."""
    brought = bool(update.step.attrs.get(BROUGHT))
    scaler: str | None = update.step.attrs.get("scaler") if brought else None
    for event in update.events:
        if event.index >= moment.index:
            break
        if event.kind is EventKind.BACKWARD:
            scaler = event.attrs.get("scaler")
        elif brought and event.kind is EventKind.GRAD_WRITE and not event.attrs.get("replaced"):
            continue  # where nobody ever asks for the scale, nor does the hand that writes
        elif event.kind in _TAKE_OUT and not event.attrs.get("keeps_scale"):
            scaler = None
    return scaler
