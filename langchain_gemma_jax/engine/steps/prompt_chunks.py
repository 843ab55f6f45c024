"""``PromptChunks``: in which chunks a request's context is read, with the programs that are at hand. Plain Python."""

from __future__ import annotations

from collections.abc import Callable

from langchain_gemma_jax.engine.base.chunk_plan import Chunk
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.executables.programs_at_hand import ProgramsAtHand
from langchain_gemma_jax.engine.requests.prompt import PlacedSpan
from langchain_gemma_jax.engine.requests.request import Request

LOOKS = 1 << 23  # of a chunk's tokens at earlier ones: about a second of a small model's on two cores
LEAST = 64  # tokens of a chunk, however much is before it


class PromptChunks:
    """The chunks of one model's prompts.

    Behind a long context a chunk takes as long as its tokens look back, so chunks get shorter there where that costs no
    other program: other requests have their turns, and a request that is cancelled ends soon.
    """

    def __init__(self, ladders: Ladders, at_hand: Callable[[Request], ProgramsAtHand], dispatch_tokens: int) -> None:
        """``at_hand`` returns a request's programs; ``dispatch_tokens``: the fixed cost of a chunk, in tokens."""
        self._ladders, self._at_hand, self._dispatch_tokens = ladders, at_hand, dispatch_tokens
        self._planned: tuple[Request, int, list[Chunk]] | None = None

    def next_end(self, request: Request) -> int:
        """Return the length up to which the next chunk, or medium, of a request's context is read."""
        held, ahead = request.held, media_ahead(request)
        if ahead and ahead[0].start <= held:
            return ahead[0].end
        chunks = self._at_hand_now(request)
        self._planned = request, held, chunks
        return held + chunks[0].tokens

    def take(self, request: Request) -> list[Chunk]:
        """Return the chunks that ``next_end`` planned, for which there are pages."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[:2] == (request, request.held):
            return planned[2]
        return self._at_hand_now(request)

    def best(self, request: Request) -> list[Chunk]:
        """Return the cheapest chunks for the text that a request reads next, if all programs are there."""
        return self._ladders.plan_chunks(self._to_read(request), self._cost)

    def capacity(self, request: Request) -> int:
        """Return how many tokens the tables reach with which a context is read: all of it, so that a program is enough.

        Shorter tables for its beginning would be other programs, to be compiled one after the other.
        """
        return self._ladders.capacity(len(request.progress.context))

    def _at_hand_now(self, request: Request) -> list[Chunk]:
        count = self._to_read(request)
        sizes = self._at_hand(request).chunks(self.capacity(request), count, self.best(request))
        return self._short_enough(self._ladders.plan_chunks(count, self._cost, sizes), request.held)

    def _short_enough(self, chunks: list[Chunk], held: int) -> list[Chunk]:
        """Return chunks of which the first takes no longer than others should wait, behind so many tokens."""
        most = max(LEAST, LOOKS // (held + 1))
        if not self._ladders.padding_is_free or not chunks or chunks[0].tokens <= most:
            return chunks
        return [Chunk(most, chunks[0].size), *chunks]

    def _to_read(self, request: Request) -> int:
        """Return the number of tokens up to the next place where reading pauses."""
        progress = request.progress
        held, total = request.held, len(progress.context)
        stops = (*progress.marks, *(placed.start for placed in media_ahead(request)[:1]))
        return min((stop for stop in stops if held < stop < total), default=total) - held

    def _cost(self, size: int) -> float:
        return size + self._dispatch_tokens


def media_ahead(request: Request) -> tuple[PlacedSpan, ...]:
    """Return the media of a request that are not read yet."""
    return tuple(placed for placed in request.asked.prompt.media if placed.end > request.held)
