"""Replicas of an engine, as far as time and memory go: prompts are read in chunks, in turns with the steps of all rows.

Between two events the rates are constant, so nothing is simulated token by token: while a prompt is being read and n
rows are written, a round is a chunk and a step; a row gets one token of it. Conversations that nobody asks about stay
in memory until it is needed, and go in the order in which they were last used.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmarks.fleet.fleet_trace import Conversation


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The speed and the room of one replica: by default as a Gemma 3 270M in bfloat16 on two cores."""

    prefill: float = 1218.0  # tokens of a prompt a second, where nothing else runs
    steps: tuple[tuple[int, float], ...] = ((1, 0.0228), (8, 0.0916))  # seconds of a step with so many rows
    chunk: int = 256  # tokens of a prompt between two steps
    rows: int = 8  # that are written at once
    kv_tokens: int = 120_000  # of all conversations in memory

    def step(self, rows: int) -> float:
        """Return the seconds of a step with so many rows: between those that were measured, in proportion."""
        if rows <= self.steps[0][0]:
            return self.steps[0][1]
        place = min(bisect_right(self.steps, (rows, 0.0)), len(self.steps) - 1)
        (fewer, fast), (more, slow) = self.steps[place - 1], self.steps[place]
        return fast + (slow - fast) * (rows - fewer) / (more - fewer)

    def check(self) -> None:
        """Refuse what is no machine.

        Raises:
            ValueError: a figure is not possible. It says which.
        """
        numbers = [rows for rows, _ in self.steps]
        if not numbers or any(one >= other for one, other in pairwise(numbers)):
            raise ValueError(f"steps: expected numbers of rows that grow, found {numbers}.")
        positive = (self.prefill, self.chunk, self.rows, self.kv_tokens, *numbers, *(each for _, each in self.steps))
        if min(positive) <= 0:
            raise ValueError("A machine's figures are all above 0.")


@dataclass(eq=False)
class Job:
    """One request on its way."""

    conversation: Conversation
    number: int  # of the conversation's requests
    arrived: float
    reused: int = 0
    unread: float = 0.0  # tokens of the prompt; until it is begun, as many as were expected
    first_token: float = -1.0
    done: float = -1.0

    @property
    def prompt(self) -> int:
        return self.conversation.requests[self.number].prompt

    @property
    def answer(self) -> int:
        return self.conversation.requests[self.number].answer

    @property
    def room(self) -> int:
        """The tokens that it takes in memory, from when it begins to be read."""
        return self.prompt + self.answer


@dataclass(eq=False)
class Replica:
    """One engine. What happens to it is told in the order of time."""

    number: int
    machine: Machine
    waiting: deque[Job] = field(default_factory=deque)
    reading: deque[Job] = field(default_factory=deque)  # begun; the first one is being read
    writing: list[tuple[float, int, Job]] = field(default_factory=list)  # by when, in tokens, they end
    idle: OrderedDict[str, tuple[str, int]] = field(default_factory=OrderedDict)  # app, tokens: by conversation
    by_app: dict[str, int] = field(default_factory=dict)  # conversations in memory
    outstanding: int = 0
    unread: float = 0.0  # tokens of prompts that nobody has read yet, where nothing could be reused
    busy: float = 0.0
    version: int = 0  # of what is expected to happen next
    now: float = 0.0
    _tokens: float = 0.0  # that each row has got since the beginning
    _running: int = 0  # tokens in memory, of what is being answered
    _idle: int = 0  # and of what nobody asks about
    _count: int = 0

    def known(self, conversation: Conversation, prompt: int) -> int:
        """Return how many leading tokens of a prompt would not have to be read here."""
        there = self.idle.get(conversation.name)
        if there is not None:
            return min(there[1], prompt - 1)
        return min(conversation.shared, prompt - 1) if self.by_app.get(conversation.app) else 0

    def take(self, job: Job) -> None:
        """Take a request."""
        self.outstanding += 1
        job.unread = float(job.prompt - self.known(job.conversation, job.prompt))
        self.unread += job.unread
        self.waiting.append(job)
        self._begin()

    def advance(self, now: float) -> list[Job]:
        """Let time pass; return the requests whose answers are over."""
        elapsed, self.now = now - self.now, now
        ended: list[Job] = []
        if elapsed > 0 and (self.reading or self.writing):
            self.busy += elapsed
            reading, writing = self._rates()
            self._tokens += elapsed * writing
            if self.reading:
                read = elapsed * reading
                self.reading[0].unread -= read
                self.unread = max(0.0, self.unread - read)
        while self.reading and self.reading[0].unread <= 1e-6:
            job = self.reading.popleft()
            job.first_token = now
            self._count += 1
            heapq.heappush(self.writing, (self._tokens + job.answer - 1, self._count, job))
        while self.writing and self.writing[0][0] <= self._tokens + 1e-9:
            job = heapq.heappop(self.writing)[2]
            job.done = now
            self.outstanding -= 1
            self._keep(job)
            ended.append(job)
        self._begin()
        return ended

    def next_event(self) -> float | None:
        """Return when something happens here by itself: a prompt is read, or an answer over."""
        reading, writing = self._rates()
        times = []
        if self.reading:
            times.append(self.reading[0].unread / reading)
        if self.writing:
            times.append((self.writing[0][0] - self._tokens) / writing)
        return self.now + max(0.0, min(times)) if times else None

    def _rates(self) -> tuple[float, float]:
        """Return the tokens a second of the prompt that is being read, and of each row that is being written."""
        chunk = self.machine.chunk / self.machine.prefill if self.reading else 0.0
        step = self.machine.step(len(self.writing)) if self.writing else 0.0
        a_round = chunk + step
        return (self.machine.chunk / a_round if chunk else 0.0), (1.0 / a_round if step else 0.0)

    def _begin(self) -> None:
        """Begin with what waits, as far as there are rows and memory."""
        while self.waiting and len(self.reading) + len(self.writing) < self.machine.rows:
            job = self.waiting[0]
            known = self.known(job.conversation, job.prompt)  # before room is made, which may forget it
            mine = self.idle.pop(job.conversation.name, None)
            if mine is not None:
                self._idle -= mine[1]
            if not self._make_room(job.room):
                if mine is not None:
                    self.idle[job.conversation.name] = mine
                    self._idle += mine[1]
                return
            self.waiting.popleft()
            self._running += job.room
            if mine is None:
                self.by_app[job.conversation.app] = self.by_app.get(job.conversation.app, 0) + 1
            self.unread += job.prompt - known - job.unread
            job.reused, job.unread = known, float(job.prompt - known)
            self.reading.append(job)

    def _make_room(self, tokens: int) -> bool:
        """Forget what was used longest ago; False if that is not enough while others are being answered."""
        most = self.machine.kv_tokens
        if self._running and self._running + tokens > most:
            return False
        while self.idle and self._running + self._idle + tokens > most:
            _, (app, size) = self.idle.popitem(last=False)
            self._idle -= size
            self.by_app[app] -= 1
        return True

    def _keep(self, job: Job) -> None:
        """Keep a conversation whose answer is over, for its next request."""
        self._running -= job.room
        self._idle += job.room
        self.idle[job.conversation.name] = (job.conversation.app, job.room)


def machine_of(told: dict[str, Any]) -> Machine:
    """Return the machine that a file of figures tells of.

    Raises:
        ValueError: it tells of none. It says what is wrong.
    """
    names = set(Machine.__dataclass_fields__)
    if unknown := sorted(set(told) - names):
        raise ValueError(f"figures: expected {', '.join(sorted(names))}; found {unknown[0]!r}.")
    try:
        given = dict(told)
        if "steps" in given:
            given["steps"] = tuple(sorted((int(rows), float(seconds)) for rows, seconds in given["steps"]))
        machine = Machine(**given)
        machine.check()
    except TypeError as error:
        raise ValueError(f"figures: expected numbers, and [rows, seconds] for each of the steps: {error}") from None
    return machine
