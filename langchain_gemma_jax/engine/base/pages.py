"""Pages in numbers: how many tokens one holds, which ones a window needs, and who has how many. Plain Python."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

PAGE = 64  # tokens; as in models/seams/kv_cache.py, which needs JAX


def pages_for(tokens: int) -> int:
    """Return the number of pages that hold this number of tokens."""
    return -(-tokens // PAGE)


@dataclass(frozen=True)
class PageSizes:
    """The bytes of a page of each kind, in all layers together."""

    whole: int
    local: int


@dataclass(frozen=True)
class Window:
    """The window of the local layers: which of their pages a conversation needs to be continued."""

    tokens: int | None  # None: every layer is global

    def pages(self, length: int) -> range:
        """Return the numbers of the pages that the token after the first ``length`` ones looks at.

        >>> Window(100).pages(200), Window(100).pages(0), Window(None).pages(200)
        (range(1, 4), range(0, 0), range(0, 0))
        """
        if self.tokens is None:
            return range(0)
        return range(max(0, length - self.tokens + 1) // PAGE, pages_for(length))

    def reach(self, held: Container[int], length: int) -> int:
        """Return the longest beginning, at most ``length``, that can be continued with the pages that are held.

        >>> Window(100).reach({0, 1, 2}, 190), Window(100).reach({0, 2}, 190)
        (190, 64)
        """
        while missing := [page for page in self.pages(length) if page not in held]:
            length = missing[-1] * PAGE
        return length
