"""Progress bars: whether to draw one, and the one of loading. Fetching draws huggingface_hub's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def is_wanted(*, progress: bool | None) -> bool:
    """What the caller said; or, for None, whether standard error is a terminal."""
    return progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def loading_bar(name: str, total: int, *, progress: bool | None) -> Iterator[Callable[[int], None] | None]:
    """Something to call with each array's bytes, or nothing."""
    if not is_wanted(progress=progress):
        yield None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(desc=f"Loading {name}", total=total, unit="B", unit_scale=True, file=sys.stderr) as bar:
        yield bar.update
