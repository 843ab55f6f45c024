"""Small charts as inline SVG, for notebooks and files, without scripts, fonts or other external resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH = 460
_LEFT, _ROW = 150, 20  # the x coordinate of bars; the height of a line
_COLORS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5")


def bars(title: str, values: Mapping[str, float], shown: Mapping[str, str] | None = None) -> str:
    """Return a chart with one bar for each name, with lengths relative to the largest value.

    Args:
        title: the chart's title, with the unit.
        values: the values by name, the first at the top.
        shown: the text after each bar, by name; by default the value.
    """
    largest = max(values.values(), default=0.0) or 1.0
    room = WIDTH - _LEFT - 90
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top, length = _ROW * (number + 1), max(0.0, room * value / largest)
        text = f"{value:g}" if shown is None else shown[name]
        parts.append(
            f'<text x="{_LEFT - 6}" y="{top + 14}" text-anchor="end">{_text(name)}</text>'
            f'<rect x="{_LEFT}" y="{top + 3}" width="{length:.1f}" height="{_ROW - 6}" '
            f'fill="{_COLORS[number % len(_COLORS)]}"/>'
            f'<text x="{_LEFT + length + 5:.1f}" y="{top + 14}">{_text(text)}</text>'
        )
    return _svg(title, _ROW * (len(values) + 1) + 4, parts)


def moments(title: str, points: Sequence[tuple[float, float]], unit: str = "s") -> str:
    """Return a chart of events, given as (time in seconds, height)."""
    height, wide = 110, WIDTH - 60
    last, most = (
        max((at for at, _ in points), default=0.0) or 1.0,
        max((took for _, took in points), default=0.0) or 1.0,
    )
    parts = [f'<line x1="40" y1="{height - 22}" x2="{WIDTH - 20}" y2="{height - 22}" stroke="#888"/>']
    for at, took in points:
        x, tall = 40 + wide * at / last, (height - 50) * took / most
        parts.append(
            f'<line x1="{x:.1f}" y1="{height - 22}" x2="{x:.1f}" y2="{height - 22 - max(tall, 1):.1f}" '
            f'stroke="{_COLORS[0]}" stroke-width="2"/>'
        )
    parts.append(f'<text x="36" y="38" text-anchor="end">{most:.2g} {_text(unit)}</text>')
    parts.append(f'<text x="40" y="{height - 6}">0 s</text>')
    parts.append(f'<text x="{WIDTH - 20}" y="{height - 6}" text-anchor="end">{last:.0f} s</text>')
    return _svg(title, height, parts)


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of name and value as an HTML table."""
    lines = (
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows
    )
    return f"<table>{''.join(lines)}</table>"


def _svg(title: str, height: int, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{_text(title)}" font-family="sans-serif" font-size="11" fill="currentColor">'
        f'<text x="4" y="14" font-weight="bold">{_text(title)}</text>{"".join(parts)}</svg>'
    )


def _text(text: str) -> str:
    """Return a text escaped for SVG, without characters that XML cannot hold."""
    return escape("".join(each if each.isprintable() else "�" for each in text[:60]))
