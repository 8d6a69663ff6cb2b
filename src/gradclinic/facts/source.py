"""Where evidence comes from."""

from enum import StrEnum


class Source(StrEnum):
    STATIC = "static"
    """Read from source text by `lint`."""
    RUNTIME = "runtime"
    """Recorded while the program ran, by `run` or `watch`."""
    PROBE = "probe"
    """The outcome of an experiment."""
