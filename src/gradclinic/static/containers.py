"""Methods of lists and dictionaries, as far as the walk needs what they hold."""

from __future__ import annotations

from gradclinic.static.arithmetic import MOST_HELD
from gradclinic.static.values import NONE, Const, Map, Seq, Stream, Unknown, Value
from gradclinic.static.walk import Arguments


def call_collection(base: Seq | Map, attr: str, args: Arguments, *, unsure: bool) -> Value:
    """`unsure`: whether it is called at all is not known."""
    if isinstance(base, Seq):
        base.perhaps = base.perhaps or (unsure and not base.items)
        if attr == "append" and args.positional and len(base.items) < MOST_HELD:
            base.items.append(args.positional[0])
        elif attr == "extend" and args.positional:
            extra = args.positional[0]
            base.items += extra.items if isinstance(extra, Seq) else [extra]
            del base.items[MOST_HELD:]
        elif attr == "pop" and base.items:
            return base.items[-1]
        return NONE
    return call_mapping(base, attr, args)


def call_mapping(base: Map, attr: str, args: Arguments) -> Value:
    """A method of a dictionary."""
    if attr == "values":
        return Seq(list(base.items.values()))
    if attr == "items":
        return Seq([Seq([Const(key), value]) for key, value in base.items.items()])
    if attr == "keys":
        return Seq([Const(key) for key in base.items])
    if attr in ("get", "pop") and args.positional and isinstance(args.positional[0], Const):
        found = base.items.get(args.positional[0].value)
        return found or (args.positional[1] if len(args.positional) > 1 else NONE)
    if attr == "setdefault" and args.positional and isinstance(args.positional[0], Const):
        usual = args.positional[1] if len(args.positional) > 1 else NONE
        return base.items.setdefault(args.positional[0].value, usual)
    if attr == "update" and args.positional and isinstance(args.positional[0], Map):
        base.items.update(args.positional[0].items)
    return Unknown(f"<dict>.{attr}()")


def call_unseen(base: Unknown, attr: str, args: Arguments) -> Value | None:
    """What a dictionary out of sight gives: the same objects, however they are asked for."""
    asked = args.get(0, "key")
    if attr == "get" and isinstance(asked, Const) and isinstance(asked.value, str):
        key = f"[{asked.value!r}]"
        return base.attrs.setdefault(key, Unknown(base.path + key, holds=base.holds))
    if attr == "values":
        return base
    if attr == "items":
        return Stream(base.path, zipped=(Unknown(f"{base.path}.keys()"), base))
    return None
