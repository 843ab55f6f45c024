"""What the owner thread stood still for: programs that it waited for, and every request with it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

MOST = 64  # of the latest ones that are remembered: more than one request meets


class Span(NamedTuple):
    """What some time went into, from when to when by ``time.monotonic()``."""

    began: float
    end: float
    what: str


class Standstills:
    """The latest standstills of one owner thread, which alone adds to them. Any thread may ask."""

    def __init__(self) -> None:
        self._over: deque[Span] = deque(maxlen=MOST)
        self._now: Span | None = None  # without an end

    @contextmanager
    def here(self, what: str) -> Iterator[None]:
        """Count a ``with`` block as one."""
        began = time.monotonic()
        self._now = Span(began, float("inf"), what)
        try:
            yield
        finally:
            self._over.append(Span(began, time.monotonic(), what))
            self._now = None

    def between(self, began: float, end: float) -> list[Span]:
        """Return what of them lies between these times."""
        now = self._now  # first: what ends meanwhile may be found twice, and is not missed
        found = {each.began: each for each in [*([] if now is None else [now]), *self._over.copy()]}
        cut = (Span(max(began, each.began), min(end, each.end), each.what) for each in found.values())
        return [each for each in cut if each.end > each.began]
