"""transformers in a conversation: each turn reads the whole prompt again, as ``ChatHuggingFace`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.rivals.hf import Transformers
from benchmarks.work.conversation import serve_talker


class Rereading(Transformers):
    """A new cache for each turn, kept within the turn."""

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        self.forget()
        yield self.read(context)
        for _ in range(count - 1):
            yield from self.decode(1)


if __name__ == "__main__":
    serve_talker(Rereading)
