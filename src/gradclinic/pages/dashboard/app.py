"""The pages and the data behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gradclinic.errors import GradclinicError
from gradclinic.markup import rendered
from gradclinic.pages import assets
from gradclinic.pages.comparison import beside_each_other
from gradclinic.pages.dashboard.catalogue import Catalogue, NoSuchRun
from gradclinic.pages.dashboard.guard import Guard
from gradclinic.pages.figures import draw
from gradclinic.pages.found import Pages, found_in
from gradclinic.pages.report import about

_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "dashboard.js": "text/javascript"}
_MOST_COMPARED = 8


def application(place: Path, pages: Pages, token: str | None = None) -> Guard:
    """The dashboard of the runs at `place`; with a `token`, for those who know it."""
    views = _Views(Catalogue(place), pages)
    routes = [
        Route("/", views.index),
        Route("/run", views.run),
        Route("/compare", views.compare),
        Route("/api/runs", views.listing),
        Route("/api/run", views.state),
        Route("/api/compare", views.comparison),
        Route("/static/{name}", views.static),
    ]
    handlers: dict[Any, Callable[[Request, Exception], Response]] = {
        NoSuchRun: _not_found,
        GradclinicError: _unreadable,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token)


class _Views:
    """Plain functions: they read files, and Starlette runs them beside its loop."""

    def __init__(self, catalogue: Catalogue, pages: Pages) -> None:
        self._catalogue = catalogue
        self._pages = pages

    def index(self, request: Request) -> Response:
        return HTMLResponse(rendered("runs.html", place=self._catalogue.place.resolve().name))

    def run(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        self._catalogue.path(name)
        return HTMLResponse(rendered("run.html", name=name))

    def compare(self, request: Request) -> Response:
        return HTMLResponse(rendered("compare.html", names=self._wanted(request)))

    def listing(self, request: Request) -> Response:
        return JSONResponse({"runs": list(self._catalogue.listing())})

    def state(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        version = self._catalogue.version(name)
        if version == request.query_params.get("known"):
            return JSONResponse({"version": version})
        run = self._catalogue.read(name)
        figures, missing = draw(run)
        return JSONResponse(
            {
                "version": version,
                "state": run.state,
                "head": about(run),
                "found": rendered("found.html", found=found_in(run, self._pages)),
                "events": rendered("events.html", events=run.events[::-1]),
                "alerts": len(run.events),
                "figures": [figure.as_json() for figure in figures],
                "missing": [f"{one.title}: {one.why}" for one in missing],
            }
        )

    def comparison(self, request: Request) -> Response:
        names = self._wanted(request)
        version = " / ".join(self._catalogue.version(name) for name in names)
        if version == request.query_params.get("known"):
            return JSONResponse({"version": version})
        runs = {name: self._catalogue.read(name) for name in names}
        found = [(name, about(run), found_in(run, {})) for name, run in runs.items()]
        return JSONResponse(
            {
                "version": version,
                "found": rendered("columns.html", runs=found),
                "figures": [figure.as_json() for figure in beside_each_other(runs)],
            }
        )

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        # A day in the browser's memory for what is large and never changes while this process lives.
        if name == "plotly.js":
            return Response(
                assets.plotly(), media_type="text/javascript", headers={"cache-control": "max-age=86400"}
            )
        if name not in _TYPES:
            return PlainTextResponse("not found", status_code=404)
        return Response(assets.own(name), media_type=_TYPES[name])

    def _wanted(self, request: Request) -> list[str]:
        names = list(dict.fromkeys(request.query_params.getlist("name")))[:_MOST_COMPARED]
        for name in names:
            self._catalogue.path(name)
        return names


def _not_found(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=404)


def _unreadable(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=409)
