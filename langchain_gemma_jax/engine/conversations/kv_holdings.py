"""``KvHoldings``: which pages of one model's pool each conversation has.

Only the owner thread runs this code. Byte counts are computed from shapes, without the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.pages import PageTotals
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.page_books import PageBook
from langchain_gemma_jax.engine.conversations.pool_arrays import PoolArrays
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.device import page_pool
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_door import Content
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident


@dataclass
class KvHoldings:
    """The pages of one model on its device. ``KvStore`` decides if there is room for more."""

    shape: Shape
    library: Library
    device: DeviceAccess
    ladders: Ladders
    metrics: Metrics
    index: PrefixIndex = field(init=False)
    changed: bool = False  # since the byte counts were last read

    def __post_init__(self) -> None:
        shape = self.shape
        self.sizes = page_pool.page_bytes(shape.layout_of_a_device, shape.recipe.kv_dtype, shape.pages.slots)
        self.paging = shape.paging
        self.index = PrefixIndex(self.paging, self.sizes)
        # Not a method of this object: a circle of references would keep programs until the next collection.
        self.arrays = PoolArrays(shape, self.device, partial(_run, self.device, self.library))
        self.whole_pages, self.local_pages = _books(self.shape)

    # Bytes.

    def nbytes(self) -> int:
        """Return the bytes of all pages in use."""
        return self.sizes.of(PageTotals(self.whole_pages.used, self.local_pages.used))

    def busy(self) -> int:
        """Return the bytes of running requests' conversations."""
        return self.index.bytes_of(resident for resident in self.index.residents if resident.leased)

    # Pages that are needed.

    def missing(self, resident: Resident, tokens: int, kept: int | None = None, *, branch: bool = False) -> PageTotals:
        """Return the pages that a conversation needs to be written up to this number of tokens.

        ``kept``: how many of its first tokens are kept, if not all. ``branch``: for a new conversation, which shares
        the pages of those.
        """
        length = len(resident.keys) if kept is None else kept
        whole, local = len(resident.whole), set(resident.local)
        if kept is not None:
            whole = min(whole, self.paging.count(kept))
            local.intersection_update(range(whole))
        copies, local_copies = self._copies(resident, length, shared=branch)
        new = set(self.paging.written(length, tokens)) - local
        return PageTotals(max(0, self.paging.count(tokens) - whole) + copies, len(new) + local_copies)

    def shortage(self, pages: PageTotals) -> int:
        """Return the bytes of those of these pages that the pool does not have free."""
        whole, local = pages.whole - self.whole_pages.free, pages.local - self.local_pages.free
        return self.sizes.of(PageTotals(max(0, whole), max(0, local)))

    # Operations on one conversation.

    def start(self, scope: str) -> Resident:
        """Begin a conversation without tokens."""
        return self.add(Resident(scope, self.paging.slots, token_keys(())))

    def add(self, resident: Resident) -> Resident:
        """Take in a conversation with its pages."""
        self.index.add(resident)
        self.changed = True
        return resident

    def drop_passed(self, resident: Resident, tokens: int) -> None:
        """Drop the pages that a conversation does not need any more while it is written up to this number of tokens."""
        ahead = self.paging.written(len(resident.keys), tokens)
        self._drop_local(resident, self.index.wanted(resident).union(ahead))

    def give_up(self, resident: Resident, tokens: int) -> bool:
        """Drop something that a conversation keeps for later turns, to be written up to this number of tokens.

        The window of its first turn, or what is kept before its end. False: nothing of that is left.
        """
        if resident.turns:
            self.forget_turn(resident, resident.turns[0])
            return True
        length = len(resident.keys)
        needed = {*self.paging.local(length), *self.paging.written(length, tokens)}
        if needed.issuperset(resident.local):
            return False
        self._drop_local(resident, needed)
        return True

    def grow(self, resident: Resident, tokens: int) -> None:
        """Give a conversation pages of its own to be written up to this number of tokens.

        What other conversations have is never written to: a page that one shares and is to be written to is copied.
        """
        self._own_the_end(resident)
        while len(resident.whole) < self.paging.count(tokens):
            resident.whole.append(self.whole_pages.take())
            self._has_changed(resident)
        for page in self.paging.written(len(resident.keys), tokens):
            if page not in resident.local:
                resident.local[page] = self.local_pages.take()
                self._has_changed(resident)

    def fork(self, source: Resident, length: int) -> Resident:
        """Begin a conversation with another's first tokens. It shares the pages, but for the one it will write to."""
        resident = Resident(source.scope, self.paging.slots, source.keys[:length], system=min(source.system, length))
        resident.turns = [turn for turn in source.turns if turn <= length]
        wanted = self.index.wanted(resident)
        resident.whole = [self.whole_pages.share(page) for page in source.whole[: self.paging.count(length)]]
        shared = {page: source.local[page] for page in wanted if page in source.local}
        resident.local = {page: self.local_pages.share(number) for page, number in shared.items()}
        self.index.touch(source)
        self.add(resident)
        self._own_the_end(resident)
        return resident

    def cut(self, resident: Resident, length: int) -> None:
        """Drop all but a conversation's first tokens."""
        self.index.truncate(resident, length)
        self.trim(resident)

    def trim(self, resident: Resident) -> None:
        """Drop the pages that a conversation had in advance, and those that nothing needs any more."""
        needed = self.paging.count(len(resident.keys))
        for page in resident.whole[needed:]:
            self.whole_pages.drop(page)
            self._has_changed(resident)
        del resident.whole[needed:]
        self._drop_local(resident, self.index.wanted(resident))

    def forget_turn(self, resident: Resident, turn: int) -> None:
        """Drop the window before an earlier length, as far as nothing else needs it."""
        self.index.forget_turn(resident, turn)
        self.drop_passed(resident, len(resident.keys))

    def drop(self, resident: Resident) -> None:
        """Drop a conversation."""
        self.index.remove(resident)
        self.metrics.evictions += 1
        self._drop_pages(resident)

    def give_back(self) -> None:
        """Give the memory of free pages back to the system, or the whole pool if no conversation is left."""
        if not self.index.residents:
            self.clear()
            return
        self.arrays.give_back(self.whole_pages.unused(), local=False)
        self.arrays.give_back(self.local_pages.unused(), local=True)

    def clear(self) -> None:
        """Drop everything, including running requests' conversations."""
        self.changed = True
        for resident in self.index.residents:
            self.index.remove(resident)
        self.arrays.drop()
        self.whole_pages, self.local_pages = _books(self.shape)

    # What is in pages.

    def read(
        self, resident: Resident, whole: Sequence[int], local: Sequence[int]
    ) -> tuple[list[Content], list[Content]]:
        """Return copies of what is in some of a conversation's pages, by their numbers in it."""
        pages = [resident.whole[number] for number in whole]
        own = [resident.local[number] for number in local]
        return self.arrays.read(pages, local=False), self.arrays.read(own, local=True)

    def place(self, resident: Resident, whole: Sequence[Content], local: dict[int, Content]) -> Resident:
        """Take in a conversation without pages, with these contents in new ones."""
        resident.whole = [self.whole_pages.take() for _ in whole]
        resident.local = {number: self.local_pages.take() for number in local}
        try:
            self.arrays.write(resident.whole, whole, local=False)
            self.arrays.write(list(resident.local.values()), list(local.values()), local=True)
        except BaseException:
            self._drop_pages(resident)
            raise
        return self.add(resident)

    # Pages.

    def _drop_local(self, resident: Resident, wanted: set[int]) -> None:
        for page in [page for page in resident.local if page not in wanted]:
            self.local_pages.drop(resident.local.pop(page))
            self._has_changed(resident)

    def _drop_pages(self, resident: Resident) -> None:
        for page in resident.whole:
            self.whole_pages.drop(page)
        resident.whole = []
        self._drop_local(resident, set())
        self._has_changed(resident)

    def _copies(self, resident: Resident, length: int, *, shared: bool = False) -> tuple[int, int]:
        """Return the pages of each kind to copy before the token behind the first ``length`` is written to one of them.

        ``shared``: another conversation will have that page too.
        """
        page, filled = divmod(length, self.paging.slots)
        if not filled:  # it is written to a page that has nothing yet
            return 0, 0
        local = resident.local.get(page)
        whole = shared or self.whole_pages.is_shared(resident.whole[page])
        return int(whole), int(local is not None and (shared or self.local_pages.is_shared(local)))

    def _own_the_end(self, resident: Resident) -> None:
        """Copy the page that a conversation's next token is written to, if another conversation has it too."""
        page = len(resident.keys) // self.paging.slots
        whole, local = self._copies(resident, len(resident.keys))
        if whole:
            resident.whole[page] = self._copied(self.whole_pages, resident.whole[page], local=False)
            self._has_changed(resident)
        if local:
            resident.local[page] = self._copied(self.local_pages, resident.local[page], local=True)
            self._has_changed(resident)

    def _copied(self, book: PageBook, page: int, *, local: bool) -> int:
        new = book.take()
        try:
            self.arrays.copy(page, new, local=local)
        except BaseException:
            book.drop(new)
            raise
        book.drop(page)
        return new

    def _has_changed(self, resident: Resident) -> None:
        resident.version += 1
        self.changed = True


def _run(device: DeviceAccess, library: Library, key: ProgramKey, *args: object) -> Any:
    """Run one of a model's programs."""
    return device.run(key, library.of(key, device.waited), *args)


def _books(shape: Shape) -> tuple[PageBook, PageBook]:
    """Return books in which all pages are free: of the global layers, and of the local ones."""
    return PageBook(shape.pages.whole), PageBook(shape.pages.local)
