"""Serve lint, run, probe and explain to coding tools over the Model Context Protocol.

Speaks on standard input and output; register it with your tool as the command `gradclinic mcp`.
Each answer is the JSON document that `--format json` writes. `run` and `probe` execute the code
they are given, as they do on the command line.
"""

from __future__ import annotations

import argparse
import signal
import sys

from gradclinic.commands.probe import kind_names
from gradclinic.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> int:
    try:
        from mcp.server import MCPServer  # noqa: F401
    except ImportError as error:
        raise UsageError("mcp needs the package mcp, 2.0 or newer; pip install 'gradclinic[mcp]'") from error
    from gradclinic.mcp_server import server

    if sys.stdin.isatty():
        print("gradclinic: waiting for a client on standard input; Ctrl-C ends it", file=sys.stderr)
    # A client that was started with interrupts ignored hands that down, and scripts are ended by one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server(kind_names()).run("stdio")
    return 0
