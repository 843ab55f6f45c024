"""``PageBook``: the pages of one kind that are free, and how many conversations have each of the others."""

from __future__ import annotations


class PageBook:
    """The books of one kind of page. Page 0 is never given out. No page is ever lost or given twice."""

    def __init__(self, count: int) -> None:
        """Take charge of the pages from 1 to ``count - 1``."""
        self._count = count
        self._next = 1  # from here on no page was ever taken
        self._free: list[int] = []
        self._holders: dict[int, int] = {}

    @property
    def count(self) -> int:
        """The number of pages, page 0 left out."""
        return self._count - 1

    @property
    def reached(self) -> int:
        """The number of pages that were ever taken: from the first one on, all of them."""
        return self._next - 1

    @property
    def used(self) -> int:
        """The number of pages in use."""
        return len(self._holders)

    @property
    def free(self) -> int:
        """The number of pages that can be taken."""
        return self._count - 1 - self.used

    def take(self) -> int:
        """Return a free page, of which there must be one. Those that were used before come first."""
        if self._free:
            page = self._free.pop()
        elif self._next < self._count:
            page, self._next = self._next, self._next + 1
        else:
            raise ValueError("no page is free: make room first")
        self._holders[page] = 1
        return page

    def share(self, page: int) -> int:
        """Note one more holder of a page, and return the page."""
        self._holders[page] += 1
        return page

    def drop(self, page: int) -> bool:
        """Note one holder less. Return True if the page is free now."""
        self._holders[page] -= 1
        if self._holders[page]:
            return False
        del self._holders[page]
        self._free.append(page)
        return True

    def is_shared(self, page: int) -> bool:
        """Return True if several conversations have a page, so that none may write to it."""
        return self._holders[page] > 1

    def holders(self) -> dict[int, int]:
        """Return the number of holders of each page in use: a copy, which any thread may ask for."""
        return self._holders.copy()

    def unused(self) -> list[int]:
        """Return the pages that were used, and are free now."""
        return sorted(self._free)
