"""Traces of agents: who asks what and when, made up by a seed or read from a file.

An agent's conversation is a chain of requests. Each has all that was said before, and some more: a user's words, or
what a tool gave. All conversations of one application begin with the same system prompt and tools. A request follows
its predecessor's answer, after a pause: a tool's time, or a person's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """One request of a conversation: its prompt's tokens, its answer's, and the seconds since the answer before."""

    prompt: int  # all of it, what was said before included
    answer: int
    pause: float = 0.0


@dataclass(frozen=True)
class Conversation:
    """A chain of requests of one application, whose first one comes at a time of its own."""

    name: str
    app: str
    shared: int  # leading tokens that all conversations of the application have
    begins: float
    requests: tuple[Request, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The habits of agents. Lengths are in tokens; each is a median, around which they are drawn log-normally."""

    apps: int = 12
    popularity: float = 1.1  # the n-th application has a share of n to the power of minus this
    shared: int = 1800  # a system prompt and tools
    question: int = 60
    result: int = 160  # of a tool
    answer: int = 50
    turns: float = 3.0  # questions in a conversation, on average: drawn geometrically
    steps: float = 2.5  # requests for each question: all but the last one call a tool
    tool_s: float = 1.0
    think_s: float = 20.0
    spread: float = 0.6  # the deviation of the logarithm of each


def made_up(conversations: int, seconds: float, seed: int, shape: Shape = Shape()) -> list[Conversation]:
    """Return conversations that begin at any time within so many seconds."""
    drawn = random.Random(seed)

    def around(middle: float) -> float:
        return middle * drawn.lognormvariate(0.0, shape.spread)

    def tokens(middle: float) -> int:
        return max(1, round(around(middle)))

    shared = [tokens(shape.shared) for _ in range(shape.apps)]
    shares = [(1 + number) ** -shape.popularity for number in range(shape.apps)]
    found = []
    for number in range(conversations):
        (app,) = drawn.choices(range(shape.apps), shares)
        context, requests = shared[app], []
        for turn in range(_times(drawn, shape.turns)):
            for step in range(_times(drawn, shape.steps)):
                first = not turn and not step
                context += tokens(shape.result if step else shape.question)
                pause = 0.0 if first else around(shape.tool_s if step else shape.think_s)
                answer = tokens(shape.answer)
                requests.append(Request(context, answer, pause))
                context += answer
        begins = drawn.uniform(0.0, seconds)
        found.append(Conversation(f"c{number}", f"a{app}", shared[app], begins, tuple(requests)))
    return found


def read_trace(lines: Iterable[str]) -> list[Conversation]:
    """Return the conversations of a file: a JSON object a line, for each request, in the order of time.

        {"conversation": "c1", "app": "billing", "at": 3.2, "shared": 1800, "prompt": 1870, "answer": 40}

    ``at`` is in seconds. Between two requests of a conversation the time is a pause, which begins with the first one's
    answer. ``app`` and ``shared`` may be left out.

    Raises:
        ValueError: a line is none of these. It says which.
    """
    chains: dict[str, list[dict[str, object]]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            chain = chains.setdefault(str(told["conversation"]), [])
            values = {name: float(told[name]) for name in ("at", "prompt", "answer")}
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f'line {number}: expected {{"conversation": ..., "at": ..., "prompt": ..., "answer": ...}}: {error!r}'
            ) from None
        if min(values.values()) < 0 or values["prompt"] < 1 or values["answer"] < 1:
            raise ValueError(f"line {number}: expected one token of prompt and answer at least, and no negative times.")
        if chain and values["at"] < float(str(chain[-1]["at"])):
            raise ValueError(f"line {number}: expected the requests of a conversation in the order of time.")
        chain.append({**values, "app": str(told.get("app", "")), "shared": int(told.get("shared", 0))})
    return [_chained(name, chain) for name, chain in chains.items()]


def read_file(path: Path) -> list[Conversation]:
    """Return the conversations of a file, as ``read_trace`` does."""
    with path.open() as opened:
        return read_trace(opened)


def _chained(name: str, chain: Sequence[dict[str, object]]) -> Conversation:
    times = [float(str(each["at"])) for each in chain]
    requests = tuple(
        Request(int(float(str(each["prompt"]))), int(float(str(each["answer"]))), at - before)
        for each, at, before in zip(chain, times, [times[0], *times], strict=False)
    )
    first = chain[0]
    return Conversation(name, str(first["app"]), int(str(first["shared"])), times[0], requests)


def _times(drawn: random.Random, mean: float) -> int:
    """Return how often something happens: once, and again as long as a coin says so."""
    count = 1
    while drawn.random() < 1 - 1 / mean:
        count += 1
    return count
