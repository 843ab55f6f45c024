"""Pages in numbers: how many tokens one holds, which ones a window needs, and who has how many. Plain Python."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

PAGE = 64  # tokens; as in models/seams/kv_cache.py, which needs JAX
SLACK = 16  # tokens before an end that are cheap to read again: of a retried turn, or that the next turn leaves out


@dataclass(frozen=True)
class PageTotals:
    """Numbers of pages of each kind."""

    whole: int
    local: int


@dataclass(frozen=True)
class PageSizes:
    """The bytes of a page of each kind, in all layers together."""

    whole: int
    local: int

    def of(self, pages: PageTotals) -> int:
        """Return the bytes of these pages."""
        return pages.whole * self.whole + pages.local * self.local


@dataclass(frozen=True)
class Paging:
    """How a model's conversations are cut into pages, and which pages of its local layers are needed."""

    slots: int  # tokens of a page
    window: int | None  # of the local layers; None: every layer is global
    slack: int = SLACK  # tokens before the end of a turn from which the next one may go on

    def count(self, tokens: int) -> int:
        """Return the number of pages that hold this number of tokens."""
        return -(-tokens // self.slots)

    def local(self, length: int) -> range:
        """Return the numbers of the local pages that the token after the first ``length`` ones looks at.

        >>> Paging(64, 100).local(200), Paging(64, 100).local(0), Paging(64, None).local(200)
        (range(1, 4), range(0, 0), range(0, 0))
        """
        if self.window is None:
            return range(0)
        return range(max(0, length - self.window + 1) // self.slots, self.count(length))

    def local_of_turn(self, length: int) -> range:
        """Return the local pages that are worth keeping of a turn, or a conversation, that ends at a length.

        The next turn may leave out the last tokens of the prompt, such as the empty thought before an answer. So it may
        go on from any of the last ``slack`` ones.

        >>> Paging(64, 8).local(327), Paging(64, 8).local_of_turn(327)
        (range(5, 6), range(4, 6))
        """
        return range(self.local(max(0, length - self.slack)).start, self.local(length).stop)

    def totals(self, tokens: int) -> PageTotals:
        """Return the pages of a conversation of this number of tokens."""
        return PageTotals(self.count(tokens), len(self.local(tokens)))

    def written(self, length: int, tokens: int) -> range:
        """Return the local pages that tokens behind the first ``length`` ones, up to ``tokens``, are written to."""
        return range(0) if self.window is None else range(length // self.slots, self.count(tokens))

    def reach(self, held: Container[int], length: int) -> int:
        """Return the longest beginning, at most ``length``, that can be continued with the local pages that are held.

        >>> Paging(64, 100).reach({0, 1, 2}, 190), Paging(64, 100).reach({0, 2}, 190)
        (190, 64)
        """
        while missing := [page for page in self.local(length) if page not in held]:
            length = missing[-1] * self.slots
        return length

    def entries(self, chunk: int, max_context: int) -> int:
        """Return the entries of the local layers' tables: for a window, and the longest chunk behind it."""
        if self.window is None:
            return 1
        return min(self.count(self.window + self.slack + chunk) + 1, self.count(max_context))
