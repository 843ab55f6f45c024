"""A picture of all bars: how far each ratio is from what was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from benchmarks.running.bars import Row

LINE, WORDS, SCALE, MOST = 20, 470, 160, 2.5  # pixels; the last: times the bar, where the picture ends
FONT = 12
GREEN, RED = "#6cbf84", "#e08a7d"


def draw(named: Sequence[tuple[str, Row]]) -> str:
    """An SVG with a bar for each row that has a ratio: as long as the share of what was asked that was reached.

    The line in the middle is what was asked for. Of ratios that have to be small the inverse is shown, so longer is
    better everywhere.
    """
    shares = [(name, row, share) for name, row in named if (share := share_of(row)) is not None]
    height, right, wide = LINE * (len(shares) + 1), WORDS + SCALE, WORDS + int(SCALE * MOST) + 90
    size = f'width="{wide}" height="{height + 8}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="{FONT}">',
        "<title>Every bar, and what share of it was reached</title>",
    ]
    for number, (name, row, share) in enumerate(shares):
        y, long = LINE * number, SCALE * min(share, MOST)
        color = GREEN if share >= 1 else RED
        parts += [
            f'<text x="{WORDS - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{WORDS}" y="{y + 3}" width="{long:.1f}" height="{LINE - 6}" fill="{color}"/>',
            f'<text x="{WORDS + long + 6:.1f}" y="{y + 14}">{row.ratio:.2f} × ({escape(row.bar)})</text>',
        ]
    parts += [
        f'<line x1="{right}" y1="0" x2="{right}" y2="{height - LINE}" stroke="#333" stroke-dasharray="3"/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def share_of(row: Row) -> float | None:
    """The share of a bar that was reached, if both are ratios: 1 and more is all of it."""
    asked = re.fullmatch(r"([≥≤]) ([\d.]+) ×", row.bar)
    if asked is None or row.ratio is None or row.ratio <= 0:
        return None
    bar = float(asked[2])
    return row.ratio / bar if asked[1] == "≥" else bar / row.ratio
