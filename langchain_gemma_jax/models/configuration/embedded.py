"""The models that come with this package, by name. Their folders are read as any other's."""

from __future__ import annotations

from pathlib import Path

EMBEDDED = ("sprout-s", "sprout-m")
DEFAULT = EMBEDDED[-1]
CONTEXT = 4096  # tokens that each of them reads and writes at most

_SHELF = Path(__file__).parents[1] / "sprout"


def embedded_folder(source: object) -> Path | None:
    """Return the folder of the embedded model with this name; None if there is none.

    For a folder of your own with such a name, write ``./sprout-m``.

        >>> embedded_folder("sprout-s").name
        'sprout-s'
        >>> embedded_folder("./sprout-s")
    """
    return _SHELF / source if isinstance(source, str) and source in EMBEDDED else None
