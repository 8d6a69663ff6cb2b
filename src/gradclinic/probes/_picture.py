"""The curve of a range test, drawn for a terminal and for a page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from gradclinic.facts.fitting import RateRange

WIDTH, HEIGHT = 64, 12


@dataclass(frozen=True)
class RateCurve:
    """What `probe_lr` hands back: it draws itself in a terminal and in a notebook."""

    found: RateRange
    conclusion: str

    @property
    def suggestion(self) -> float | None:
        return self.found.suggestion

    def __str__(self) -> str:
        return "\n".join(part for part in (sketch(self.found), self.conclusion) if part)

    def _repr_html_(self) -> str:
        return _FIGURE.format(style=_STYLE, svg=_svg(self.found), conclusion=escape(self.conclusion))


def sketch(found: RateRange) -> str:
    """Loss over the logarithm of the rate, in characters."""
    points = _finite(found)
    if len(points) < 2:
        return ""
    low, high = _span(points, found.first)
    left, right = points[0][0], points[-1][0]
    canvas = [[" "] * WIDTH for _ in range(HEIGHT)]
    for rate, loss in points:
        column = round((rate - left) / (right - left) * (WIDTH - 1))
        row = round((high - min(loss, high)) / (high - low) * (HEIGHT - 1))
        canvas[row][column] = "•"
    labels = [f"{high:>9.3g} ┤"] + ["          │"] * (HEIGHT - 2) + [f"{low:>9.3g} ┤"]
    lines = [label + "".join(row).rstrip() for label, row in zip(labels, canvas, strict=True)]
    lines.append("          └" + "─" * WIDTH)
    ticks = [" "] * (WIDTH + 8)
    for power in range(math.ceil(left), math.floor(right) + 1):
        column = round((power - left) / (right - left) * (WIDTH - 1))
        ticks[column : column + 5] = f"1e{power:+d}".ljust(5)
    lines.append("           " + "".join(ticks).rstrip())
    marks = [" "] * WIDTH
    for letter, marked in (("s", found.steepest), ("d", found.diverges), ("^", found.suggestion)):
        if marked:
            at = round((math.log10(marked) - left) / (right - left) * (WIDTH - 1))
            marks[min(max(at, 0), WIDTH - 1)] = letter
    lines.append("           " + "".join(marks).rstrip())
    lines.append("           ^ suggestion  s steepest descent  d divergence")
    return "\n".join(lines)


def page(found: RateRange, title: str) -> str:
    """One self-contained page with the curve as SVG; it loads nothing."""
    return _PAGE.format(title=escape(title), style=_STYLE, svg=_svg(found), reason=escape(found.reason))


def _svg(found: RateRange) -> str:
    points = _finite(found)
    if len(points) < 2:
        return "<p>The loss was finite at too few rates to draw a curve.</p>"
    low, high = _span(points, found.first)
    left, right = points[0][0], points[-1][0]

    def x(power: float) -> float:
        return 60 + (power - left) / (right - left) * 560

    def y(loss: float) -> float:
        return 20 + (high - min(loss, high)) / ((high - low) or 1.0) * 260

    path = " ".join(f"{x(rate):.1f},{y(loss):.1f}" for rate, loss in points)
    parts = [
        f'<polyline points="{path}" class="curve"/>',
        '<text x="340" y="322" class="tick">learning rate</text>',
        '<text x="52" y="10" class="side">loss</text>',
    ]
    for power in range(math.ceil(left), math.floor(right) + 1):
        parts.append(f'<text x="{x(power):.1f}" y="300" class="tick">1e{power}</text>')
    for loss in (low, (low + high) / 2, high):
        parts.append(f'<text x="52" y="{y(loss) + 4:.1f}" class="side">{loss:.3g}</text>')
    for trial in found.trials:
        if math.isfinite(trial.loss):
            at = f'cx="{x(math.log10(trial.rate)):.1f}" cy="{y(trial.loss):.1f}"'
            parts.append(f'<circle {at} r="4" class="trial"/>')
    named = (("steepest", found.steepest), ("divergence", found.diverges), ("suggestion", found.suggestion))
    for row, (name, rate) in enumerate(named):
        if rate:
            line = min(max(x(math.log10(rate)), 60), 620)
            parts.append(f'<line x1="{line:.1f}" x2="{line:.1f}" y1="20" y2="280" class="{name}"/>')
            # What stands near the right edge is written to the left of its line.
            begins, side = (line + 4, "start") if line < 540 else (line - 4, "end")
            place = f'x="{begins:.1f}" y="{32 + 14 * row}" text-anchor="{side}"'
            parts.append(f'<text {place}>{name} {rate:.2g}</text>')
    return f'<svg viewBox="0 0 640 330" role="img" aria-label="loss over rate">{"".join(parts)}</svg>'


def _finite(found: RateRange) -> list[tuple[float, float]]:
    return [(math.log10(point.rate), point.loss) for point in found.points if math.isfinite(point.loss)]


def _span(points: list[tuple[float, float]], first: float) -> tuple[float, float]:
    """The losses worth showing: a diverged tail would flatten everything else."""
    low = min(loss for _, loss in points)
    high = min(max(loss for _, loss in points), first + 1.5 * max(first - low, 0.1 * abs(first)))
    return low, high if high > low else low + 1.0


_STYLE = """<style>
.gc-rates { max-width: 60rem; font: 15px system-ui, sans-serif; }
.gc-rates svg { width: 100%; }
.gc-rates text { font: 11px system-ui, sans-serif; fill: currentColor; }
.gc-rates .curve { fill: none; stroke: #2563eb; stroke-width: 2; }
.gc-rates .trial { fill: #2563eb; opacity: .5; }
.gc-rates .tick { text-anchor: middle; } .gc-rates .side { text-anchor: end; }
.gc-rates line { stroke-dasharray: 4 3; }
.gc-rates line.steepest { stroke: #64748b; } .gc-rates line.divergence { stroke: #dc2626; }
.gc-rates line.suggestion { stroke: #16a34a; stroke-dasharray: none; stroke-width: 2; }
</style>"""
_LEGEND = "<p>The curve is the sweep; the dots are short trials at one rate each.</p>"
_FIGURE = '{style}<div class="gc-rates">{svg}<p>{conclusion}</p>' + _LEGEND + "</div>"
_PAGE = (
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}: learning rate</title>{style}<style>
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 15px system-ui, sans-serif; }}
</style></head><body class="gc-rates"><h1>{title}: learning rate</h1>{svg}<p>{reason}</p>"""
    + _LEGEND
    + "</body></html>\n"
)
