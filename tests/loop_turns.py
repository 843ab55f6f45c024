"""The work of an event loop's thread in each of its turns: a loop is free where no turn is long.

Lines of Python are counted, and files noted whose functions ran there, so the machine and what else it does are all
one. What blocks without running Python is what ``blockbuster`` watches for.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from dataclasses import dataclass, field
from types import FrameType

_A_TURN = asyncio.Handle._run.__code__
SHORT = 20_000  # lines of Python that a turn may run: some thousandths of a second


@dataclass
class Turns:
    """The turns of a loop while some work was awaited."""

    count: int = 0
    longest: int = 0  # lines
    files: set[str] = field(default_factory=set)  # whose functions ran there
    _lines: int = 0

    def look(self, frame: FrameType, event: str, _argument: object) -> object:
        if event == "line":
            self._lines += 1
            self.longest = max(self.longest, self._lines)
        elif event == "call":
            self.files.add(frame.f_code.co_filename)
            if frame.f_code is _A_TURN:
                self.count += 1
                self._lines = 0
        return self.look

    def ran(self, part: str) -> list[str]:
        """Return the files with this in their path whose functions ran on the loop's thread."""
        return sorted(file for file in self.files if part in file)


async def turns_of(work: Awaitable[object]) -> Turns:
    """Return what the running event loop's thread did until some work was done."""
    found, before = Turns(), sys.gettrace()
    await asyncio.sleep(0)  # what was scheduled before has begun
    sys.settrace(found.look)  # type: ignore[arg-type]
    try:
        await work
    finally:
        sys.settrace(before)
    return found
