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
from langchain_gemma_jax.engine.base.program_key import ENCODING, MOVING, ProgramKey
from langchain_gemma_jax.errors import ContextLengthError, InputError

GUESSES = (1, 2, 4)  # of a drafter, and as many as can be checked
FEW_TOKENS = 16  # a chunk of no more gives what it read of each token: drafts are checked in one
LARGEST_RUNG = 2**30  # so that a position, chunk included, is an int32


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

        >>> ladders = Ladders(rows=(1, 4)).for_context(6000)
        >>> ladders.capacities
        (2048, 6000)
        >>> ladders.capacity(700), ladders.rows_for(3)
        (2048, 4)
        >>> ladders.plan_chunks(20)
        [Chunk(tokens=16, size=16), Chunk(tokens=4, size=16)]

    Raises:
        InputError: a ladder is not possible. The message says why.
    """

    chunks: tuple[int, ...] = (16, 512)
    """Tokens of a prompt that are read at once."""
    capacities: tuple[int, ...] = (2048, 8192, 32768, 131072)
    """Tokens that tables of pages reach, where attention goes through whole tables. Where kernels attend, which go
    through what is filled, there is one: the longest context."""
    rows: tuple[int, ...] = (1, 8)
    """Conversations that share a step. The first is 1."""
    draft: int = 7
    """Drafted tokens that are checked at once, from 0 (no drafts) to 15. With the newest token they are read in one of
    the chunks of up to 16 tokens."""
    padding_is_free: bool = False
    """Kernels skip padding, so that a chunk costs what its real tokens cost."""

    def __post_init__(self) -> None:
        for name in ("chunks", "capacities", "rows"):
            object.__setattr__(self, name, _ladder(name, getattr(self, name)))
        if self.rows[0] != 1:
            raise InputError(f"rows: expected the first to be 1, for a conversation alone, found {self.rows[0]}.")
        if not _is_whole(self.draft) or not 0 <= self.draft < FEW_TOKENS:
            raise InputError(
                f"draft: expected a whole number from 0 (no drafts) to {FEW_TOKENS - 1}, found {self.draft!r}."
            )
        if not any(self.draft < size <= FEW_TOKENS for size in self.chunks):
            raise InputError(
                f"chunks: expected one of {self.draft + 1} to {FEW_TOKENS} tokens, in which a token and {self.draft} "
                f"drafted ones are checked, found {self.chunks}."
            )

    @property
    def longest_chunk(self) -> int:
        """The most tokens of a prompt that are read at once."""
        return self.chunks[-1]

    @property
    def check(self) -> int:
        """The size of the chunk in which drafted tokens are checked."""
        return next(size for size in self.chunks if size > self.draft)

    @property
    def guesses(self) -> tuple[int, ...]:
        """The numbers of guesses that a drafter beside the model makes at once."""
        return tuple(sorted({count for count in GUESSES if count < self.draft} | {self.draft})) if self.draft else ()

    @property
    def picks(self) -> int:
        """The rows that tokens are picked for at once: of a step, or of a check."""
        return max(self.rows[-1], self.draft + 1)

    def for_context(self, max_context: int) -> Ladders:
        """Return the ladders for conversations of up to ``max_context`` tokens, which becomes the last capacity."""
        if not _is_whole(max_context) or not 1 <= max_context <= LARGEST_RUNG:
            raise InputError(f"max_context: expected a whole number from 1 to 2**30, found {max_context!r}.")
        return replace(self, capacities=(*(c for c in self.capacities if c < max_context), max_context))

    def for_kernels(self, *, padding_is_free: bool) -> Ladders:
        """Return the ladders where kernels follow the tables of pages, so that all may reach the longest context."""
        return replace(self, capacities=self.capacities[-1:], padding_is_free=padding_is_free)

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
        self, count: int, cost: Callable[[int], float] | None = None, sizes: tuple[int, ...] | None = None
    ) -> list[Chunk]:
        """Return the cheapest chunks for reading ``count`` tokens.

        All but the last are full. ``cost`` is the cost of reading a chunk of a size; the default is the size plus 48,
        about the cost of a dispatch. Planning again after the first chunk gives chunks of the same cost as the
        remaining ones. ``sizes`` are the ladder's sizes that may be used, if not all.
        """
        if count < 0:
            raise InputError(f"expected a number of tokens, found {count}.")
        sizes = sizes or self.chunks
        if not self.padding_is_free:
            return plan(sizes, count, count + sizes[-1], self.capacities[-1] + sizes[-1], cost or _cost)
        full, rest = divmod(count, sizes[-1])
        last = [Chunk(rest, next(size for size in sizes if size >= rest))] if rest else []
        return [Chunk(sizes[-1], sizes[-1])] * full + last

    def draft_keys(self) -> Iterator[ProgramKey]:
        """Yield every program of a drafter beside the model."""
        yield from (("draft", count, capacity) for capacity in self.capacities for count in self.guesses)

    def program_keys(self, *, moves_pages: bool) -> Iterator[ProgramKey]:
        """Yield every program that can ever be needed. ``moves_pages``: programs copy pages, as the host cannot."""
        for kind, sizes in self._kinds(moves_pages=moves_pages).items():
            for each in sizes:
                yield (kind, *each)

    def programs(self, *, moves_pages: bool = False) -> Bound:
        """Return the largest possible number of programs.

        >>> print(Ladders(chunks=(16, 512)).for_context(131072).for_kernels(padding_is_free=True).programs())
        1 empty + 2 read + 1 pick + 2 step = 6 programs
        >>> print(Ladders(chunks=(16, 512)).for_context(131072).programs(moves_pages=True))
        1 empty + 8 read + 1 pick + 8 step + 1 copy_pages + 1 take_pages + 1 put_pages = 21 programs
        """
        kinds = self._kinds(moves_pages=moves_pages)
        return Bound({kind: len(sizes) for kind, sizes in kinds.items() if sizes})

    def _kinds(self, *, moves_pages: bool) -> dict[str, list[tuple[int, ...]]]:
        """Return the sizes that each kind of program is compiled for. They are defined here alone."""
        moving: list[tuple[int, ...]] = [()] if moves_pages else []
        return {
            "empty": [()],
            "read": [(chunk, capacity) for capacity in self.capacities for chunk in self.chunks],
            "pick": [(rows,) for rows in sorted({*self.rows[1:], self.picks})],
            "step": [(rows, capacity) for capacity in self.capacities for rows in self.rows],
            **dict.fromkeys(MOVING, moving),
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
