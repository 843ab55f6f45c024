"""The progress bar of loading. Downloads draw huggingface_hub's own bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def is_wanted(*, progress: bool | None) -> bool:
    """Return True if a bar is to be drawn: as the caller asked; for None, if standard error is a terminal."""
    return progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def loading_bar(name: str, total: int, *, progress: bool | None) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to call with the bytes of each array; None if no bar is drawn."""
    if not is_wanted(progress=progress):
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=f"Loading {name}", total=total, unit="B", unit_scale=True, file=sys.stderr) as bar:
        yield bar.update
