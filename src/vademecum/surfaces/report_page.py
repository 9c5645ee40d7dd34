"""The report as one HTML page that needs nothing else: a table, and pictures over time."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from vademecum.cache.report import STEPS, Report

WIDTH, HEIGHT, LEFT, FOOT = 720, 160, 56, 22

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .8rem }
tr + tr { border-top: 1px solid #ccc } .missed { color: #b00020; font-weight: bold }
svg { width: 100%; height: auto } text { font-size: 11px; fill: #555 }
"""


def page(report: Report) -> str:
    period = f"{report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M %Z}"
    rows = "".join(
        f"<tr><td>{escape(m.name)}</td><td>{escape(m.target)}</td><td>{escape(m.measured)}</td>"
        f'<td class="{m.verdict.replace(" ", "-")}">{m.verdict}</td></tr>\n'
        for m in report.metrics
    )
    rates = [(b.step, 100 * b.hits / b.checks) for b in report.buckets if b.checks]
    slow = [(b.step, b.p95) for b in report.buckets]
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Cache report</title><style>{_STYLE}</style>\n"
        f"<h1>Cache report</h1><p>{period}</p>\n"
        f"<table><tr><th>Metric<th>Target<th>Measured<th>Verdict</tr>\n{rows}</table>\n"
        f"<h2>Hit rate, %</h2>\n{_picture(report, rates, 100, 60, 'Hit rate over time')}\n"
        f"<h2>Check latency p95, ms</h2>\n"
        f"{_picture(report, slow, max([100.0, *(y for _, y in slow)]), 100, 'Latency over time')}\n"
        "</html>\n"
    )


def _picture(
    report: Report, points: Sequence[tuple[int, float]], top: float, target: float, title: str
) -> str:
    """A dot for each step, a line between those that follow one another, and the target dashed."""
    if not points:
        return "<p>No checks in this period.</p>"

    def x(step: int) -> float:
        return LEFT + (step - 0.5) / STEPS * (WIDTH - LEFT)

    def y(value: float) -> float:
        return 8 + (1 - value / top) * (HEIGHT - FOOT - 8)

    lines = "".join(
        f"M{x(step):.1f} {y(value):.1f}L{x(following):.1f} {y(then):.1f}"
        for (step, value), (following, then) in pairwise(points)
        if following == step + 1
    )
    dots = "".join(
        f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3"><title>{value:.1f}</title></circle>'
        for step, value in points
    )
    floor = y(0)
    highest = f'<text x="{LEFT - 6}" y="14" text-anchor="end">{top:.0f}</text>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" fill="#1a5fb4">'
        f'<path d="M{LEFT} 8V{floor}H{WIDTH}" fill="none" stroke="#999"/>'
        f'<path d="M{LEFT} {y(target):.1f}H{WIDTH}" stroke="#999" stroke-dasharray="4"/>'
        f"{highest if top > target else ''}"
        f'<text x="{LEFT - 6}" y="{y(target) + 4:.1f}" text-anchor="end">{target:.0f}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}">{report.since:%m-%d %H:%M}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 5}" text-anchor="end">{report.until:%m-%d %H:%M}</text>'
        f'<path d="{lines}" fill="none" stroke="#1a5fb4" stroke-width="2"/>{dots}</svg>'
    )
