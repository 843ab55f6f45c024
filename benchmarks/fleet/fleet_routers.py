"""Routers: which replica a request goes to."""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

from benchmarks.fleet.fleet_replicas import Job, Replica

POINTS = 100  # of a replica on the ring
BOUND = 1.25  # times the mean load, from which on a bounded router goes on along the ring
ASKED = 8  # replicas with an application's beginning that are compared


class Router(Protocol):
    """Chooses among replicas, of which it sees what a router would: loads, and what it sent where."""

    def choose(self, job: Job) -> Replica:
        """Return the replica that is to answer."""

    def noted(self, replica: Replica, before: int) -> None:
        """Note that a replica's outstanding requests changed."""


class Unnoticed:
    """A router that looks at no loads, or looks them up itself."""

    def noted(self, replica: Replica, before: int) -> None:
        """Note nothing."""


class Random(Unnoticed):
    """Any replica."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:
        self._replicas, self._drawn = replicas, random.Random(seed)

    def choose(self, job: Job) -> Replica:  # noqa: ARG002
        return self._drawn.choice(self._replicas)


class Loads:
    """Replicas by how many requests are outstanding at each: any of the fewest at once, however many there are."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:
        self._drawn = random.Random(seed)
        self._at: list[list[Replica]] = [list(replicas)]
        self._place = {each.number: place for place, each in enumerate(replicas)}

    def least(self) -> Replica:
        """Return one of those with the fewest."""
        return self._drawn.choice(next(each for each in self._at if each))

    def moved(self, replica: Replica, before: int) -> None:
        """Put a replica where it belongs now."""
        old = self._at[before]
        place, last = self._place[replica.number], old.pop()
        if last is not replica:
            old[place] = last
            self._place[last.number] = place
        while len(self._at) <= replica.outstanding:
            self._at.append([])
        self._place[replica.number] = len(self._at[replica.outstanding])
        self._at[replica.outstanding].append(replica)


class LeastLoaded:
    """A replica with the fewest outstanding requests."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:
        self._loads = Loads(replicas, seed)

    def choose(self, job: Job) -> Replica:  # noqa: ARG002
        return self._loads.least()

    def noted(self, replica: Replica, before: int) -> None:
        self._loads.moved(replica, before)


class Ring:
    """Consistent hashing: a name's replica stays the same when others come and go."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        points = sorted((_hash(f"{each.number}/{point}"), each) for each in replicas for point in range(POINTS))
        self._hashes, self._replicas = [at for at, _ in points], [each for _, each in points]

    def of(self, name: str, fits: Callable[[Replica], bool]) -> Replica:
        """Return the first replica behind a name's place that fits."""
        place = bisect_left(self._hashes, _hash(name))
        for step in range(len(self._hashes)):
            if fits(found := self._replicas[(place + step) % len(self._replicas)]):
                return found
        return self._replicas[place % len(self._replicas)]


class Sticky(Unnoticed):
    """The replica of the conversation's name, whatever its load is: the header x-session-id."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:  # noqa: ARG002
        self._ring = Ring(replicas)

    def choose(self, job: Job) -> Replica:
        return self._ring.of(job.conversation.name, lambda _: True)


class StickyBounded:
    """The replica of the conversation's name; the next on the ring while that one's rows are taken and others' less."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:  # noqa: ARG002
        self._ring, self._count, self._all = Ring(replicas), len(replicas), 0

    def choose(self, job: Job) -> Replica:
        most = BOUND * (self._all + 1) / self._count
        return self._ring.of(job.conversation.name, lambda each: each.outstanding < max(most, each.machine.rows))

    def noted(self, replica: Replica, before: int) -> None:
        self._all += replica.outstanding - before


class Remembered:
    """A new conversation's replica is a least loaded one, and stays its replica: a router with a table."""

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:
        self._loads = Loads(replicas, seed)
        self._of: dict[str, Replica] = {}

    def choose(self, job: Job) -> Replica:
        return self._of.setdefault(job.conversation.name, self._loads.least())

    def noted(self, replica: Replica, before: int) -> None:
        self._loads.moved(replica, before)


class PrefixAware:
    """The replica with the soonest first token, from what is to be read there before it.

    Compared are where the conversation was last, a few that have its application's beginning, and the least loaded.
    """

    def __init__(self, replicas: Sequence[Replica], seed: int) -> None:
        self._loads, self._drawn = Loads(replicas, seed), random.Random(seed + 1)
        self._last: dict[str, Replica] = {}
        self._having: dict[str, list[Replica]] = {}  # by application, each once
        self._known: set[tuple[str, int]] = set()

    def choose(self, job: Job) -> Replica:
        name, app = job.conversation.name, job.conversation.app
        having = self._having.setdefault(app, [])
        compared = [self._loads.least()]
        if last := self._last.get(name):
            compared.append(last)
        else:
            compared += having if len(having) <= ASKED else self._drawn.sample(having, ASKED)
        found = min(compared, key=lambda each: (_until_first(each, job), each.number))
        self._last[name] = found
        if (app, found.number) not in self._known:
            self._known.add((app, found.number))
            having.append(found)
        return found

    def noted(self, replica: Replica, before: int) -> None:
        self._loads.moved(replica, before)


ROUTERS: dict[str, Callable[[Sequence[Replica], int], Router]] = {
    "random": Random,
    "least loaded": LeastLoaded,
    "sticky": Sticky,
    "sticky, bounded": StickyBounded,
    "remembered": Remembered,
    "prefix-aware": PrefixAware,
}


def _until_first(replica: Replica, job: Job) -> float:
    """Return about how many seconds pass until the first token: for what is to be read, between others' steps."""
    machine = replica.machine
    unread = replica.unread + job.prompt - replica.known(job.conversation, job.prompt)
    rows = min(replica.outstanding, machine.rows)
    queued = max(0, replica.outstanding + 1 - machine.rows) / machine.rows * job.answer * machine.step(machine.rows)
    return unread / machine.prefill + unread / machine.chunk * (machine.step(rows) if rows else 0.0) + queued


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
