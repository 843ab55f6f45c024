"""Which requests run next, and what of them. Plain Python, no arrays.

Reading and stepping take turns, so neither a long prompt nor long answers hold up the others. Of the
requests that read, the one with the least left comes first, and every fourth time the oldest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.requests.request import Request


@dataclass(frozen=True)
class Read:
    """A chunk of one request's context."""

    request: Request


@dataclass(frozen=True)
class Step:
    """A token for each of these requests, which share a model and a capacity."""

    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Verify:
    """One request's drafted tokens."""

    request: Request


Work: TypeAlias = Read | Step | Verify


class Scheduler:
    """The requests that wait, and those that run."""

    OLDEST_EVERY = 4
    DRAFT_WITH = 2  # requests at most that decode at once: with more, steps are shared better than drafts save

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._reads = 0
        self._read_last = False
        self._planned: deque[Work] = deque()  # the steps that come before the next look at who is ready

    def __len__(self) -> int:
        return len(self.waiting) + len(self.running)

    def __contains__(self, request: Request) -> bool:
        return request in self.running or request in self.waiting

    @property
    def has_room(self) -> bool:
        """Whether one more may run."""
        return len(self.running) < self.rows

    def start(self, request: Request) -> None:
        """A waiting request got its memory."""
        self.waiting.remove(request)
        self.running.append(request)

    def put_back(self, request: Request) -> None:
        """A running request lost its memory: it is the next to get some."""
        self.running.remove(request)
        self.waiting.appendleft(request)
        self._planned.clear()

    def remove(self, request: Request) -> None:
        """Forget a request that is over."""
        (self.running if request in self.running else self.waiting).remove(request)
        self._planned.clear()

    def next(self) -> Work | None:
        """What to run now; None: every request waits for something in flight, or there is none."""
        while self._planned:
            work = self._planned.popleft()
            if self._still(work):
                return work
        readers = [request for request in self.running if request.to_read > 1]
        steps = self._steps()
        if readers and not (self._read_last and steps):
            self._read_last = True
            self._reads += 1
            by_age = self._reads % self.OLDEST_EVERY == 0
            return Read(min(readers, key=lambda r: (0 if by_age else r.to_read, r.asked.number)))
        self._read_last = False
        self._planned.extend(steps)
        return self._planned.popleft() if self._planned else None

    def alike(self, request: Request) -> int:
        """How many running requests can share steps with this one, once their prompts are read. It is one of them."""
        return sum(other.group == request.group for other in self.running)

    def split(self, requests: tuple[Request, ...]) -> None:
        """Give the next step to requests that do not share the one that was to be run now, if there are any."""
        if requests:
            self._planned.appendleft(Step(requests))

    def _steps(self) -> list[Work]:
        ready = [request for request in self.running if request.wants_step]
        drafting = [r for r in ready if r.progress.draft] if len(ready) <= self.DRAFT_WITH else []
        work: list[Work] = [Verify(request) for request in drafting if not request.progress.issued]
        groups: dict[Hashable, list[Request]] = {}
        for request in ready:
            if request not in drafting:
                groups.setdefault(request.group, []).append(request)
        work.extend(Step(tuple(group)) for group in groups.values())
        return work

    def _still(self, work: Work) -> bool:
        """Whether the requests of some work, planned earlier, can still take a step."""
        requests: Iterable[Request] = work.requests if isinstance(work, Step) else (work.request,)
        return all(request.wants_step for request in requests)
