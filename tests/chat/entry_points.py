"""The entry points of the package, as its project file has them."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

ROOT = Path(__file__).parents[2]


def entry_points() -> list[EntryPoint]:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    return [EntryPoint(name, value, group) for group, lines in groups.items() for name, value in lines.items()]
