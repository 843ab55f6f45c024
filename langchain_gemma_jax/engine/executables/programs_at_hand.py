"""The choice among programs that are ready now. A better-fitting one is made in the background, without waiting for it.

A step of many rows takes seconds to compile when it is first needed. Until it is ready, its requests run in the steps
that are: fewer rows at a time, or more than are needed. Their answers are the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

from langchain_gemma_jax.engine.base.chunk_plan import Chunk
from langchain_gemma_jax.engine.base.guards import Asks
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import TAKE_ADAPTERS, ProgramKey, adapted, without_adapters
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.executables.library import Library

_OF_A_CAPACITY = ("read", "step", "draft", "read_medium")  # programs whose key ends in the tokens that tables reach


class ProgramsAtHand:
    """The programs of one model that are ready to run. For the owner thread."""

    def __init__(
        self,
        library: Library,
        ladders: Ladders,
        device: DeviceAccess,
        *,
        loops: bool,
        stacked: tuple[int, int] | None = None,
    ) -> None:
        """``stacked``: the slots and the rank of adapters, for programs whose rows may have some."""
        self._library, self._ladders, self._device = library, ladders, device
        self._loops = loops  # a step with any rows picks its tokens itself
        self._stacked = stacked

    def with_adapters(self, stacked: tuple[int, int] | None) -> ProgramsAtHand:
        """Return the programs whose rows may have adapters, in so many slots and of this rank. None: those without."""
        if stacked == self._stacked:
            return self
        return ProgramsAtHand(self._library, self._ladders, self._device, loops=self._loops, stacked=stacked)

    def key(self, *plain: str | int) -> ProgramKey:
        """Return the key of the program to run in the place of the one without adapters."""
        if self._stacked is None or plain[0] not in TAKE_ADAPTERS:
            return plain
        return adapted(plain, *self._stacked)

    def rows(self, count: int, capacity: int, alike: int) -> list[int]:
        """Return the rows of the steps that this number of requests can run in, the best first; at least one.

        Args:
            count: the number of requests that are ready.
            capacity: the tokens that their tables reach.
            alike: the number including those that will be ready soon. A step for all of them is made.
        """
        ladder = self._ladders.rows
        fitting = bisect_left(ladder, count)
        if not self._library.makes_later:
            return [ladder[fitting], *reversed(ladder[:fitting])]
        self._want(self._step(self._ladders.rows_for(alike), capacity))
        best_first = [*ladder[fitting:], *reversed(ladder[:fitting])]
        there = [rows for rows in best_first if self._there(self._step(rows, capacity))]
        return [*there, *(() if 1 in there else (1,))]

    def verifies(self, capacity: int) -> bool:
        """Return True if drafted tokens can be verified now. If not, the programs for it are being made."""
        return self._want([self.key("read", self._ladders.check, capacity), ("pick", self._ladders.picks)])

    def guesses(self, capacity: int, ran: Collection[int]) -> tuple[int, ...]:
        """Return the numbers of guesses that a drafter can make now.

        The two smallest are made first, and each larger one when the one below it has run: it may never pay.

        Args:
            capacity: the tokens that the request's table reaches.
            ran: the numbers that have been asked for.
        """
        every = self._ladders.guesses
        if not self._library.makes_later:
            return every
        wanted = every[: 2 + sum(count in ran for count in every[1:])]
        return tuple(count for count in wanted if self._want([("draft", count, capacity)]))

    def chunks(self, capacity: int, count: int, best: Sequence[Chunk]) -> tuple[int, ...]:
        """Return the sizes of chunks in which to read ``count`` tokens.

        All sizes, if the first of the best ones is ready; otherwise those that are ready. If these are not enough, a
        single size, if it needs fewer compiles than the best ones: a chunk that is half padding takes a fraction of a
        second, and compiling a program takes some seconds.
        """
        everything = self._ladders.chunks
        if not self._library.makes_later or self._there([self.key("read", best[0].size, capacity)]):
            return everything
        there = tuple(size for size in everything if self._there([self.key("read", size, capacity)]))
        if there:
            return there
        one = next((size for size in everything if size >= count), everything[-1])
        fewer = self._to_compile({one}, capacity) < self._to_compile({chunk.size for chunk in best}, capacity)
        return (one,) if fewer else everything

    def needed(
        self,
        request: Asks,
        chunks: set[int],
        capacity: int,
        *,
        steps: bool,
        later: Collection[int] = (),
        media: Sequence[ProgramKey] = (),
    ) -> None:
        """Make all missing programs for a prompt in parallel, not one after the other.

        Args:
            request: the prompt's request.
            chunks: the sizes that it is read in.
            capacity: the tokens that its table reaches.
            steps: more than one token will be generated.
            later: the sizes in which the next similar prompt will be read.
            media: the programs for its pictures and sounds.

        Raises:
            GuardError: a guard does not let the request begin.
        """
        waited: list[ProgramKey] = [
            ("empty",),
            *(self.key(*each) for each in media),
            *(self.key("read", size, capacity) for size in sorted(chunks)),
            ("pick", self._ladders.picks),
        ]
        if steps:
            waited.append(self.key("step", 1, capacity))
        # Where few programs are enough, the next turn's are made during this one: a tool's result is a short chunk.
        soon = {*later, *(self._ladders.chunks if self._ladders.padding_is_free else ())} - chunks
        keys = [*waited, *(self.key("read", size, capacity) for size in sorted(soon))]
        missing = [key for key in keys if key not in self._device.seen]
        self._device.begins(request, missing, lambda: self._library.cold_cost(waited))
        if missing:
            for key in missing:
                self._device.expect(key)
            self._library.soon(missing)
            self._library.soon(self._as_elsewhere(capacity))

    def _as_elsewhere(self, capacity: int) -> list[ProgramKey]:
        """Return the programs that ran for other capacities, for this one, so that later turns do not wait for them."""
        seen = self._device.seen
        ran = {key[:-1] for key in seen if without_adapters(key)[0][0] in _OF_A_CAPACITY}
        keys: list[ProgramKey] = [(*key, capacity) for key in sorted(ran, key=str)]
        return [key for key in keys if key not in seen and key in self._device.bound]

    def _step(self, rows: int, capacity: int) -> list[ProgramKey]:
        step = self.key("step", rows, capacity)
        return [step] if rows == 1 or self._loops else [step, ("pick", rows)]

    def _to_compile(self, chunks: set[int], capacity: int) -> int:
        """Return the number of programs for these chunks that are neither ready nor on disk."""
        return sum(not self._library.kept(self.key("read", size, capacity)) for size in chunks)

    def _there(self, keys: list[ProgramKey]) -> bool:
        return all(self._library.there(key) for key in keys)

    def _want(self, keys: list[ProgramKey]) -> bool:
        """Return True if these programs can run now. If not, they are made in the background.

        A program that failed there counts as ready: running it raises its error.
        """
        if not self._library.makes_later:
            return True
        for key in keys:
            self._device.expect(key)
        self._library.soon(keys)
        return self._there(keys)
