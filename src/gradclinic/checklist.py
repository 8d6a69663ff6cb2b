"""The fourteen points of a reliable training loop, each with the rules that guard it."""

POINTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("train and eval mode are set on purpose", ("GC701", "GC702")),
    ("gradients are cleared once per update", ("GC101", "GC102", "GC103")),
    ("every update follows a backward", ("GC104", "GC105")),
    ("accumulated losses are scaled to the window", ("GC106", "GC107", "GC108")),
    ("the loss fits its input and its target", ("GC401", "GC402", "GC404", "GC405", "GC407")),
    ("padding stays out of the loss", ("GC406",)),
    ("the differentiable path is not cut", ("GC201", "GC202", "GC203", "GC204")),
    ("every trainable parameter is reached and updated", ("GC205", "GC301", "GC302")),
    ("frozen parameters stay as they are", ("GC303", "GC704")),
    ("unscale, clip and step come in this order", ("GC109", "GC110", "GC111", "GC501", "GC502", "GC503")),
    ("the schedule advances once per update", ("GC112", "GC113", "GC114", "GC115")),
    ("evaluation builds no graph", ("GC703",)),
    ("what is kept across steps carries no graph", ("GC212",)),
    ("a checkpoint holds all that a resume needs", ("GC710",)),
)
