"""The work of our engine in a round. Each function gives what it took, as plain values."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.running.serve import Answer
from benchmarks.work.conversation import ANSWER, AT_ONCE, SHORT_ANSWER, SHORT_PROMPT, hold, random_ids
from benchmarks.work.replay import ANSWER as REPLAY
from benchmarks.work.replay import CONTEXT
from benchmarks.work.vocabulary import BOS, encode
from langchain_gemma_jax import Engine, Generation, Sampling, Served

MOST_REUSED = 16  # tokens that two new prompts may have in common


@dataclass
class Talking:
    """A conversation with a model that the engine serves. Nothing is known of it from an earlier one."""

    engine: Engine
    served: Served
    name: str  # no other conversation is of this scope
    drafts: bool
    reused: list[int] = field(default_factory=list)  # tokens, in each turn

    def forget(self) -> None:
        self.reused = []

    def answer(self, context: Sequence[int], count: int) -> Iterator[int]:
        generation = self.engine.submit(self.served, context, _greedy(count, drafts=self.drafts), scope=self.name)
        for piece in generation:
            yield from piece.ids
        reused = generation.result().reused_tokens
        if not self.reused and reused > MOST_REUSED:
            raise RuntimeError(f"Expected a prompt that is read whole, found {reused} of its tokens kept from before.")
        self.reused.append(reused)


def conversation(engine: Engine, served: Served, number: int, *, drafts: bool, count: int = ANSWER) -> Answer:
    """The conversation that the rivals hold too, and how many tokens of each turn were there already."""
    talking = Talking(engine, served, f"conversation {number}, drafts {drafts}", drafts)
    return {**hold(talking, number, count), "reused": talking.reused}


def together(engine: Engine, served: Served, number: int) -> Answer:
    """Seconds for some conversations at once, by how many; ``alone``: for each of the most, one after another."""
    prompts = random.Random(number)

    def submitted() -> Generation:
        return engine.submit(served, random_ids(prompts, SHORT_PROMPT), _greedy(SHORT_ANSWER))

    def seconds(count: int) -> float:
        began = time.perf_counter()
        for generation in [submitted() for _ in range(count)]:
            generation.result()
        return time.perf_counter() - began

    alone = [seconds(1) for _ in range(max(AT_ONCE))]
    return {"alone": alone, **{str(count): seconds(count) for count in AT_ONCE}}


def replay(engine: Engine, taught: Served, number: int, *, drafts: bool) -> Answer:
    """The tool-calling turn: seconds to the first token and to the last, and what became of the drafts."""
    prompt, expected = replay_ids()
    scope = f"replay {number}, drafts {drafts}"
    began = time.perf_counter()
    generation = engine.submit(taught, prompt, _greedy(len(expected), drafts=drafts), scope=scope)
    first = 0.0
    for _ in generation:
        first = first or time.perf_counter() - began
    whole = time.perf_counter() - began
    done = generation.result()
    return {
        "first": first,
        "whole": whole,
        "tokens": len(done.ids),
        "as_taught": sum(one == other for one, other in zip(done.ids, expected, strict=False)),
        "drafted": done.drafted_tokens,
        "accepted": done.accepted_tokens,
    }


def replay_ids() -> tuple[list[int], list[int]]:
    """The tool-calling turn's context, and its answer."""
    return [BOS, *encode(CONTEXT)], encode(REPLAY)


def steps(engine: Engine, served: Served, number: int, rows: int) -> Answer:
    """Decode steps of so many conversations alone: seconds by where they went, and bytes copied to the device."""
    prompts = random.Random(f"steps {number}")
    running = [engine.submit(served, random_ids(prompts, SHORT_PROMPT), _greedy(SHORT_ANSWER)) for _ in range(rows)]
    streams = [iter(generation) for generation in running]
    for stream in streams:  # when each has its first token, all prompts are read
        next(stream)
    before, began = engine.report(), time.perf_counter()
    for stream in streams:
        for _ in stream:
            pass
    seconds, after = time.perf_counter() - began, engine.report()
    return {
        "seconds": seconds,
        "steps": after.steps - before.steps,
        "host": after.host_s - before.host_s,
        "dispatch": after.dispatch_s - before.dispatch_s,
        "device": after.device_s - before.device_s,
        "bytes": after.bytes_to_device - before.bytes_to_device,
    }


def _greedy(count: int, *, drafts: bool = False) -> Sampling:
    return Sampling(max_tokens=count, ignore_eos=True, drafts=drafts)
