"""llama.cpp in a conversation: what was read stays in its cache, and each turn reads only what is new.

Of its ways this one was the fastest: its evaluation call (``Llama.generate`` finds the common beginning
by itself, and was up to 10 % slower), batches of 512, a float16 cache, without flash attention, and
with a cache of sliding layers that is no longer than their window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import llama_cpp

from benchmarks.rivals.llama import VERSION, likeliest_after, open_llama
from benchmarks.running.serve import Answer, Job
from benchmarks.work.conversation import CAPACITY, serve_talker


class Continuing:
    """One context for the whole conversation."""

    def __init__(self, llama: llama_cpp.Llama) -> None:
        self.llama = llama
        self.facts: Answer = {"version": VERSION}

    def forget(self) -> None:
        self.llama.reset()

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        new = context[self.llama.n_tokens :]
        for _ in range(count):
            new = (likeliest_after(self.llama, new),)
            yield new[0]


def talking(job: Job) -> Continuing:
    """The engine that a job asks for."""
    return Continuing(open_llama(job, n_ctx=CAPACITY, n_batch=512, n_ubatch=512, swa_full=False))


if __name__ == "__main__":
    serve_talker(talking)
