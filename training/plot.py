"""The loss as a picture: a small SVG, written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

_WIDTH, _HEIGHT, _EDGE = 720, 360, 48


def plot(path: Path, history: Sequence[Sequence[float]], title: str) -> None:
    """Draw loss (log scale, left) and accuracy (right) of ``[tokens, loss, accuracy]`` over tokens."""
    if len(history) < 2:
        return
    most = max(row[0] for row in history)
    low, high = (f(math.log10(max(row[1], 1e-4)) for row in history) for f in (min, max))

    def points(column: int) -> str:
        out = []
        for row in history:
            share = row[2] if column == 2 else (math.log10(max(row[1], 1e-4)) - low) / max(high - low, 1e-9)
            x, y = _EDGE + row[0] / most * (_WIDTH - 2 * _EDGE), _HEIGHT - _EDGE - share * (_HEIGHT - 2 * _EDGE)
            out.append(f"{x:.1f},{y:.1f}")
        return " ".join(out)

    bottom = _HEIGHT - _EDGE
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n'
        f'<text x="{_EDGE}" y="24" font-size="15">{title}</text>\n'
        f'<path d="M{_EDGE} {_EDGE}V{bottom}H{_WIDTH - _EDGE}" fill="none" stroke="#888"/>\n'
        f'<text x="{_EDGE - 6}" y="{_EDGE + 4}" text-anchor="end" fill="#06c">{10**high:.2f}</text>\n'
        f'<text x="{_EDGE - 6}" y="{bottom}" text-anchor="end" fill="#06c">{10**low:.2f}</text>\n'
        f'<text x="{_WIDTH - _EDGE + 6}" y="{_EDGE + 4}" fill="#c60">100 %</text>\n'
        f'<text x="{_WIDTH - _EDGE}" y="{bottom + 18}" text-anchor="end">{most / 1e6:.1f} M tokens</text>\n'
        f'<text x="{_EDGE}" y="{bottom + 18}" fill="#06c">loss on the model\'s turns (log)</text>\n'
        f'<text x="{_EDGE + 220}" y="{bottom + 18}" fill="#c60">token accuracy</text>\n'
        f'<polyline points="{points(1)}" fill="none" stroke="#06c" stroke-width="1.5"/>\n'
        f'<polyline points="{points(2)}" fill="none" stroke="#c60" stroke-width="1.5"/>\n'
        "</svg>\n"
    )
