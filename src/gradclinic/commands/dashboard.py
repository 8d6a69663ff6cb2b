"""Show runs in a browser while they train: figures, alerts, several runs beside each other.

RUN or DIR is a run folder, a folder of runs or a project; left out, the current directory. Answers on
this machine only, unless --host says otherwise, and then only to those who have the token. Needs
plotly, starlette and uvicorn (extra `dashboard`).

    gradclinic dashboard
    gradclinic dashboard --port 9000 .gradclinic
"""

from __future__ import annotations

import argparse
import secrets
import socket
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from gradclinic.commands._rule_pages import rule_pages
from gradclinic.errors import UsageError
from gradclinic.pages.assets import plotly_file

LOOPBACK = "127.0.0.1"
USUAL_PORT = 8642


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", nargs="?", default=".", metavar="RUN|DIR", help="what to show (default: here)"
    )
    parser.add_argument("--host", default=LOOPBACK, help="address to answer on (default: this machine only)")
    parser.add_argument(
        "--port", type=int, help=f"port (default: {USUAL_PORT}, or a free one; 0: a free one)"
    )
    parser.add_argument("--token", help="what others must know (default, with --host: a new one)")


def run(args: argparse.Namespace) -> int:
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        words = " and ".join(missing)
        raise UsageError(f"the dashboard needs {words}; install with `pip install 'gradclinic[dashboard]'`")
    plotly_file()
    place = Path(args.place)
    if not place.exists():
        raise UsageError(f"{place} does not exist; give a run folder, a project, or nothing")
    token = args.token or (None if _is_loopback(args.host) else secrets.token_urlsafe(18))

    import uvicorn

    from gradclinic.pages.dashboard.app import application

    with _listening(args.host, args.port) as door:
        host = f"[{args.host}]" if ":" in args.host else args.host
        secret = f"?token={token}" if token else ""
        print(f"http://{host}:{door.getsockname()[1]}/{secret}", flush=True)
        settings = uvicorn.Config(
            application(place, rule_pages(), token),
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        uvicorn.Server(settings).run(sockets=[door])
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int | None) -> socket.socket:
    """On the port that was asked for; on the usual one if it is free, when none was."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in (USUAL_PORT, 0) if port is None else (port,):
        door = socket.socket(family, socket.SOCK_STREAM)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, tried))
            # Before the address is told: who opens it at once waits instead of being turned away.
            door.listen()
        except (OSError, OverflowError) as error:
            door.close()
            reason = error
        else:
            return door
    raise UsageError(f"cannot answer on {host} port {port or USUAL_PORT}: {reason}; try --port 0") from reason
