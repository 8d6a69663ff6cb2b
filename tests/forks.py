"""Processes of their own for scripts, ranks and killed runs, which find torch imported already."""

from __future__ import annotations

import multiprocessing
import random
import socket

server = multiprocessing.get_context("forkserver")
# The first optimizer of a process imports torch._dynamo, which takes longer than most of the scripts.
server.set_forkserver_preload(
    [
        "torch",
        "torch._dynamo",
        "torch.distributed.fsdp",
        "gradclinic.commands.run",
        "gradclinic.runtime.attached",
        "gradclinic.train.checkpoint",
    ]
)


def free_port() -> str:
    """For ranks to meet at; below the range from which the system hands ports to whoever connects."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return str(port)
