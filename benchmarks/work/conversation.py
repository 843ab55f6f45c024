"""The conversation that engines continue: an agent's, of ten turns, each a little more than all before it.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.workload import VOCABULARY

# What each turn adds: a system prompt with its tools first, then tool results and questions.
NEW_TOKENS = (800, 20, 200, 20, 60, 20, 200, 20, 200, 60)
ANSWER = 48  # tokens that the model adds in each turn
LENGTH = sum(NEW_TOKENS) + ANSWER * len(NEW_TOKENS)
# Short conversations of one turn, several at once.
AT_ONCE = (1, 2, 4, 8)
SHORT_PROMPT, SHORT_ANSWER = 256, 64
CAPACITY = 4096  # for an engine that has to be told beforehand
WARM_UP = -1  # the seed of a conversation that is not measured


class Talker(Protocol):
    """Something that continues a conversation greedily."""

    def forget(self) -> None:
        """Make ready for another conversation. Not timed."""

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        """The next ``count`` tokens behind all that was said so far, each as soon as it is known."""


def turns(seed: int, text: Sequence[int] = ()) -> list[list[int]]:
    """Return the tokens that each turn adds. Another seed gives others, so that no engine has seen any of them.

    ``text``: what is cut into turns, if not random ids; another seed begins elsewhere in it.
    """
    chosen = random.Random(seed)
    if text:
        ends = [chosen.randrange(len(text)), *NEW_TOKENS]
        starts = list(accumulate(ends))
        return [[text[at % len(text)] for at in range(one, other)] for one, other in pairwise(starts)]
    return [random_ids(chosen, length) for length in NEW_TOKENS]


def random_ids(chosen: random.Random, length: int) -> list[int]:
    """Tokens of which no library could take one for padding or an end."""
    return [chosen.randrange(1000, VOCABULARY - 1000) for _ in range(length)]


def hold(
    talker: Talker, seed: int, count: int = ANSWER, until: int = len(NEW_TOKENS), text: Sequence[int] = ()
) -> Answer:
    """Hold a conversation: seconds to the first token and to the last one of each turn, and the tokens.

    Each engine gets its own answers back, as an agent would give them. ``until``: the last turn.
    """
    context = list[int]()
    first, whole, tokens = list[float](), list[float](), list[list[int]]()
    talker.forget()
    for new in turns(seed, text)[:until]:
        context += new
        began = time.perf_counter()
        found, to_first = list[int](), 0.0
        for token in talker.answer(tuple(context), count):
            if not found:
                to_first = time.perf_counter() - began
            found.append(token)
        first.append(to_first)
        whole.append(time.perf_counter() - began)
        tokens.append(found)
        context += found
    return {"first": first, "whole": whole, "tokens": tokens}


class TalkingEngine(Talker, Protocol):
    """An engine that can hold a conversation and nothing else."""

    facts: Answer
    """Versions, and whatever else the report shows of it."""


def serve_talker(make: Callable[[Job], TalkingEngine]) -> None:
    """``serve`` for such an engine: a conversation a round."""

    def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
        talker = make(job)
        hold(talker, WARM_UP, count=2, until=3)
        return talker.facts, rounds(lambda number: {"conversation": hold(talker, number)})

    serve(start)


def rounds(run: Callable[[int], Answer]) -> Callable[[], Answer]:
    """Number the rounds from 0, the same for every engine."""
    number = -1

    def next_round() -> Answer:
        nonlocal number
        number += 1
        return run(number)

    return next_round
