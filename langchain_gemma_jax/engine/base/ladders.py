"""The ladders: the only sizes that programs are compiled for, and the bound on programs that follows from them.

A request can have any length. Its programs have sizes from the ladders, so the configuration alone bounds their number,
and no prompt can cause one more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from langchain_gemma_jax.engine.base.chunk_plan import Chunk, plan
from langchain_gemma_jax.engine.base.program_key import ENCODING, ProgramKey
from langchain_gemma_jax.errors import ContextLengthError, InputError

STEP_SLACK = 16  # physical slots beyond a capacity; as in models/seams/kv_cache.py, which needs JAX
LARGEST_RUNG = 2**30  # so that a position, slack and chunk included, is an int32


@dataclass(frozen=True)
class Bound:
    """The largest possible number of programs, by kind."""

    kinds: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    def __str__(self) -> str:
        return " + ".join(f"{count} {kind}" for kind, count in self.kinds.items()) + f" = {self.total} programs"


@dataclass(frozen=True)
class Ladders:
    """The sizes of programs. More rungs waste less work on padding, and cost more compiles.

        >>> ladders = Ladders(rows=(1, 2, 4)).for_context(6000)
        >>> ladders.capacities
        (512, 1024, 2048, 4096, 6000)
        >>> ladders.capacity(700), ladders.rows_for(3)
        (1024, 4)
        >>> ladders.plan_chunks(start=100, count=75, capacity=512)
        [Chunk(tokens=64, size=64), Chunk(tokens=11, size=16)]

    Raises:
        InputError: a ladder is not possible. The message says why.
    """

    chunks: tuple[int, ...] = (16, 64, 256, 512)
    """Tokens of a prompt that are read at once. The smallest is at most 16, because a cache has 16 slots beyond its
    capacity for the padding of a last chunk. A chunk that is too long for a capacity is not used with it."""
    capacities: tuple[int, ...] = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
    """Tokens that the cache of a conversation can hold. It is copied to the next when it is full."""
    rows: tuple[int, ...] = (1, 2, 4, 8)
    """Conversations that share a step. The first is 1."""
    draft: int = 7
    """Drafted tokens that are checked at once, from 0 (no drafts) to 15: with the newest token they must fit the 16
    slots beyond the capacity."""

    def __post_init__(self) -> None:
        for name in ("chunks", "capacities", "rows"):
            object.__setattr__(self, name, _ladder(name, getattr(self, name)))
        if self.chunks[0] > STEP_SLACK:
            raise InputError(
                f"chunks: expected the smallest to be at most {STEP_SLACK}, found {self.chunks[0]}. A cache has "
                f"{STEP_SLACK} slots beyond its capacity, and the last chunk of a full one is padded into them."
            )
        if self.rows[0] != 1:
            raise InputError(f"rows: expected the first to be 1, for a conversation alone, found {self.rows[0]}.")
        if not _is_whole(self.draft) or not 0 <= self.draft < STEP_SLACK:
            raise InputError(
                f"draft: expected a whole number from 0 (no drafts) to {STEP_SLACK - 1}, found {self.draft!r}."
            )

    def for_context(self, max_context: int) -> Ladders:
        """Return the ladders for conversations of up to ``max_context`` tokens, which becomes the last capacity."""
        if not _is_whole(max_context) or not 1 <= max_context <= LARGEST_RUNG:
            raise InputError(f"max_context: expected a whole number from 1 to 2**30, found {max_context!r}.")
        return replace(self, capacities=(*(c for c in self.capacities if c < max_context), max_context))

    def capacity(self, tokens: int) -> int:
        """Return the smallest capacity that holds this number of tokens.

        Raises:
            ContextLengthError: no capacity does.
        """
        if tokens > self.capacities[-1]:
            raise ContextLengthError(tokens, self.capacities[-1])
        return self.capacities[bisect_left(self.capacities, tokens)]

    def rows_for(self, conversations: int) -> int:
        """Return the rows of the smallest step for this number of conversations."""
        if not 1 <= conversations <= self.rows[-1]:
            raise InputError(f"expected from 1 to {self.rows[-1]} conversations in a step, found {conversations}.")
        return self.rows[bisect_left(self.rows, conversations)]

    def plan_chunks(
        self,
        start: int,
        count: int,
        capacity: int,
        cost: Callable[[int], float] | None = None,
        sizes: tuple[int, ...] | None = None,
    ) -> list[Chunk]:
        """Return the cheapest chunks for reading ``count`` tokens after the first ``start``.

        All but the last are full, and none exceeds the cache, padding included. ``cost`` is the cost of reading a chunk
        of a size; the default is the size plus 48, about the cost of a dispatch. Planning again after the first chunk
        gives chunks of the same cost as the remaining ones. ``sizes`` are the ladder's sizes that may be used, if not
        all; a plan with them must exist: see ``chunk_plan.plan``.
        """
        if capacity not in self.capacities:
            raise InputError(f"capacity: expected one of {self.capacities}, found {capacity}.")
        if start < 0 or count < 0 or start + count > capacity:
            raise InputError(
                f"expected tokens between 0 and the capacity, {capacity}, found {count} after the first {start}."
            )
        room = capacity + STEP_SLACK - start
        return plan(sizes or self.chunks, count, room, self.capacities[-1] + STEP_SLACK, cost or _cost)

    def program_keys(self, window: int | None) -> Iterator[ProgramKey]:
        """Yield every program that can ever be needed. ``window``: of the local layers; None if there are none."""
        for kind, sizes in self._kinds(window).items():
            for each in sizes:
                yield (kind, *each)

    def programs(self, window: int | None) -> Bound:
        """Return the largest possible number of programs.

        >>> print(Ladders(rows=(1, 2)).for_context(1024).programs(window=512))
        8 read + 3 pick + 4 step + 2 verify + 2 empty + 4 resize + 2 snapshot + 2 restore = 27 programs
        """
        return Bound({kind: len(sizes) for kind, sizes in self._kinds(window).items()})

    def _kinds(self, window: int | None) -> dict[str, list[tuple[int, ...]]]:
        """Return the sizes that each kind of program is compiled for. They are defined here alone."""
        all_ = self.capacities
        # A ring has slots for the window and the slack or, in a small cache, as many as a global layer.
        rings = [] if window is None else sorted({min(capacity, window) + STEP_SLACK for capacity in all_})
        return {
            "read": [(chunk, capacity) for capacity in all_ for chunk in self.chunks if chunk <= capacity + STEP_SLACK],
            "pick": [(rows,) for rows in sorted({*self.rows, self.draft + 1})],
            "step": [(rows, capacity) for capacity in all_ for rows in self.rows],
            "verify": [(self.draft + 1, capacity) for capacity in all_ if self.draft],
            "empty": [(capacity,) for capacity in all_],
            "resize": [(old, new) for old in all_ for new in all_],  # to the same capacity: a copy, for a fork
            "snapshot": [(capacity,) for capacity in all_ if rings],
            "restore": [(ring, capacity) for ring in rings for capacity in all_],
        }


@dataclass(frozen=True)
class MediaLadder:
    """The sizes in which pictures and sounds are encoded and read. Each medium is read whole, in one chunk.

    >>> ladder = MediaLadder.of((16, 256), encoders=(((896,), 256, 256), ((2520, 10080), 1, 1120)))
    >>> ladder.chunks
    ((256,), (16, 256, 512, 1024, 1120))
    >>> ladder.chunk(1, 264)
    512
    """

    sizes: tuple[tuple[int, ...], ...]  # input sizes of each encoder
    chunks: tuple[tuple[int, ...], ...]  # chunk sizes for the soft tokens of each encoder

    @classmethod
    def of(cls, chunks: tuple[int, ...], encoders: Sequence[tuple[tuple[int, ...], int, int]]) -> MediaLadder:
        """Return the ladder for encoders, each given as (sizes of its input, fewest tokens, most tokens)."""
        lengths = (_between(chunks, fewest, most) for _, fewest, most in encoders)
        return cls(tuple(sizes for sizes, _, _ in encoders), tuple(lengths))

    def chunk(self, encoder: int, tokens: int) -> int:
        """Return the size of the chunk for this number of an encoder's soft tokens."""
        return self.chunks[encoder][bisect_left(self.chunks[encoder], tokens)]

    def program_keys(self, capacities: tuple[int, ...]) -> Iterator[ProgramKey]:
        """Every program that can ever be asked for."""
        for number, (sizes, chunks) in enumerate(zip(self.sizes, self.chunks, strict=True)):
            for part in ENCODING:
                yield from ((part, number, size) for size in sizes)
            yield from (("read_medium", number, chunk, capacity) for capacity in capacities for chunk in chunks)


def _between(chunks: tuple[int, ...], fewest: int, most: int) -> tuple[int, ...]:
    """Return the chunk sizes for ``fewest`` to ``most`` tokens, with larger ones added if all are too small."""
    found = [*chunks]
    while found[-1] < most:
        found.append(min(2 * found[-1], most))
    return tuple(found[bisect_left(found, fewest) : bisect_left(found, most) + 1])


@dataclass(frozen=True)
class TextBatch:
    """Texts that are read at once: their indices among those that were given, and the size of the program."""

    texts: tuple[int, ...]
    rows: int
    tokens: int

    @property
    def key(self) -> ProgramKey:
        return ("embed", self.rows, self.tokens)


@dataclass(frozen=True)
class TextLadder:
    """The sizes in which embedding models read whole texts.

    >>> TextLadder.for_context(100).batches([90, 3, 5, 4])
    [TextBatch(texts=(1, 3, 2), rows=8, tokens=16), TextBatch(texts=(0,), rows=1, tokens=100)]
    """

    tokens: tuple[int, ...]

    MOST_ROWS = 8
    AT_ONCE = 4096  # tokens of a batch: temporary memory grows with them

    @classmethod
    def for_context(cls, max_context: int) -> TextLadder:
        """Return the ladder for texts of up to ``max_context`` tokens, which becomes the last rung."""
        rungs, rung = [], 16
        while rung < max_context:
            rungs.append(rung)
            rung *= 2
        return cls((*rungs, max_context))

    def rows(self, tokens: int) -> int:
        """Return the number of texts of this length that are read at once."""
        return max(1, min(self.MOST_ROWS, self.AT_ONCE // tokens))

    def program_keys(self) -> Iterator[ProgramKey]:
        """Every program that can ever be asked for."""
        for tokens in self.tokens:
            for rows in sorted({1, self.rows(tokens)}):
                yield ("embed", rows, tokens)

    def batches(self, lengths: Sequence[int]) -> list[TextBatch]:
        """Divide texts of these lengths into batches of similar length, the shortest first."""
        by_rung: dict[int, list[int]] = {}
        for text in sorted(range(len(lengths)), key=lengths.__getitem__):
            by_rung.setdefault(self.tokens[bisect_left(self.tokens, lengths[text])], []).append(text)
        found = []
        for tokens, texts in by_rung.items():
            most = self.rows(tokens)
            for at in range(0, len(texts), most):
                some = texts[at : at + most]
                if 4 * len(some) <= most:  # reading them one by one is less work than reading the padding
                    found += [TextBatch((text,), 1, tokens) for text in some]
                else:
                    found.append(TextBatch(tuple(some), most, tokens))
        return found


def _cost(size: int) -> float:
    return size + 48


def _ladder(name: str, rungs: object) -> tuple[int, ...]:
    if not isinstance(rungs, tuple | list) or not rungs or not all(_is_whole(rung) for rung in rungs):
        raise InputError(f"{name}: expected a tuple of one or more whole numbers, found {rungs!r}.")
    if not (rungs[0] >= 1 and rungs[-1] <= LARGEST_RUNG and all(low < high for low, high in pairwise(rungs))):
        raise InputError(f"{name}: expected numbers from 1 to 2**30, each larger than the one before, found {rungs!r}.")
    return tuple(rungs)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
