"""``Scheduler``: the choice of the next dispatch among the running requests. Plain Python, no arrays.

Reading and stepping take turns, so neither a long prompt nor long answers block other requests. Among the requests with
a prompt to read, the one with the least left comes first, and every fourth time the oldest. What is read ahead is read
when nothing else runs.
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
    """One token for each of these requests, which share a model."""

    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Verify:
    """The verification of one request's drafted tokens; without any, a step whose state a drafter goes on from."""

    request: Request


Work: TypeAlias = Read | Step | Verify


class Scheduler:
    """The waiting and the running requests."""

    OLDEST_EVERY = 4
    DRAFT_WITH = 2  # the most decoding requests with drafts: with more, sharing steps saves more than drafts

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._reads = 0
        self._read_last = False
        self._planned: deque[Work] = deque()  # steps that run before the next scheduling

    def __len__(self) -> int:
        return len(self.waiting) + len(self.running)

    def __contains__(self, request: Request) -> bool:
        return request in self.running or request in self.waiting

    @property
    def has_room(self) -> bool:
        """True if one more request may run."""
        return len(self.running) < self.rows

    def start(self, request: Request) -> None:
        """Move a waiting request, which has got memory, to the running ones."""
        self.waiting.remove(request)
        self.running.append(request)

    def put_back(self, request: Request) -> None:
        """Move a running request, which has lost its memory, to the front of the waiting ones."""
        self.running.remove(request)
        self.waiting.appendleft(request)
        self._planned.clear()

    def remove(self, request: Request) -> None:
        """Remove a request that is over."""
        (self.running if request in self.running else self.waiting).remove(request)
        self._planned.clear()

    def next(self) -> Work | None:
        """Return the work to run now. None: there are no requests, or all wait for dispatches in flight."""
        while self._planned:
            work = self._planned.popleft()
            if self._still(work):
                return work
        alone = all(request.gives_way for request in self.running)
        readers = [request for request in self.running if request.to_read > 1 and (alone or not request.gives_way)]
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
        """Return the number of running requests, with this one, that can share steps once their prompts are read."""
        return sum(other.group == request.group for other in self.running)

    def split(self, requests: tuple[Request, ...]) -> None:
        """Schedule the next step for the requests that do not fit in the current one, if there are any."""
        if requests:
            self._planned.appendleft(Step(requests))

    def _steps(self) -> list[Work]:
        ready = [request for request in self.running if request.wants_step]
        drafting = (
            [r for r in ready if r.progress.draft or r.progress.wants_state] if len(ready) <= self.DRAFT_WITH else []
        )
        work: list[Work] = [Verify(request) for request in drafting if not request.progress.issued]
        groups: dict[Hashable, list[Request]] = {}
        for request in ready:
            if request not in drafting:
                groups.setdefault(request.group, []).append(request)
        work.extend(Step(tuple(group)) for group in groups.values())
        return work

    def _still(self, work: Work) -> bool:
        """Return True if the requests of planned work can still take a step."""
        requests: Iterable[Request] = work.requests if isinstance(work, Step) else (work.request,)
        return all(request.wants_step for request in requests)
