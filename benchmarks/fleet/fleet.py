"""Find out which router keeps a fleet of engines fast: replay agents against 1 to 1,000 replicas, in simulated time.

    python benchmarks/fleet/fleet.py                              # made-up agents, 1 to 100 replicas
    python benchmarks/fleet/fleet.py --replicas 1 10 1000 --load 0.8
    python benchmarks/fleet/fleet.py --trace mine.jsonl --replicas 4
    python benchmarks/fleet/fleet.py --measure sprout-m > mine.json  # this machine's figures ...
    python benchmarks/fleet/fleet.py --figures mine.json             # ... instead of those that are built in

For each router it says which share of prompts was reused, how long the first token took, and what it cost: seconds of
a device for a thousand answers. The same agents come to each router; nothing but the seed is drawn. A made-up load of
1.0 is what a replica can just do if no token is ever read twice. ``fleet_trace.py`` says what agents are like, and what
a file of one's own looks like; ``fleet_replicas.py``, what a replica is.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fleet.fleet_replicas import Job, Machine, Replica, machine_of
from benchmarks.fleet.fleet_routers import ROUTERS
from benchmarks.fleet.fleet_trace import Conversation, Shape, made_up, read_file

WARM = 0.2  # the share of the time that is not looked at: nothing is in memory then


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trace: its requests, and the seconds that each replica worked."""

    jobs: tuple[Job, ...]
    busy: tuple[float, ...]

    @property
    def figures(self) -> dict[str, float]:
        """The figures of a table, of requests behind the warm-up."""
        begin = WARM * max(each.arrived for each in self.jobs)
        jobs = [each for each in self.jobs if each.arrived >= begin] or list(self.jobs)
        waits = sorted(each.first_token - each.arrived for each in jobs)
        return {
            "hit": sum(each.reused for each in jobs) / sum(each.prompt for each in jobs),
            "p50": median(waits),
            "p95": waits[min(len(waits) - 1, int(0.95 * len(waits)))],
            "cost": 1000 * sum(self.busy) / len(self.jobs),
            "uneven": max(self.busy) / fmean(self.busy),
        }


class Fleet:
    """Some replicas and a router, and what is going to happen to them, in the order of time."""

    def __init__(self, machine: Machine, replicas: int, router: str, seed: int) -> None:
        self.replicas = [Replica(number, machine) for number in range(replicas)]
        self.done: list[Job] = []
        self._router = ROUTERS[router](self.replicas, seed)
        self._events: list[tuple[float, int, int, Job | int]] = []
        self._count = 0

    def comes(self, job: Job) -> None:
        """Have a request come at its time."""
        self._at(job.arrived, job)

    def run(self) -> None:
        """Let everything happen."""
        while self._events:
            now, _, version, what = heapq.heappop(self._events)
            if isinstance(what, Job):
                self._touch(self._router.choose(what), now, what)
            elif version == self.replicas[what].version:
                self._touch(self.replicas[what], now)

    def _at(self, time: float, what: Job | int, version: int = 0) -> None:
        self._count += 1  # of two things at one time, that which was known first happens first
        heapq.heappush(self._events, (time, self._count, version, what))

    def _touch(self, replica: Replica, now: float, taken: Job | None = None) -> None:
        """Let time pass at a replica, give it a request, and find out when it is to be looked at again."""
        before = replica.outstanding
        ended = replica.advance(now)
        if taken is not None:
            replica.take(taken)
        if replica.outstanding != before:
            self._router.noted(replica, before)
        for job in ended:
            self.done.append(job)
            if (following := job.number + 1) < len(job.conversation.requests):
                self.comes(Job(job.conversation, following, now + job.conversation.requests[following].pause))
        replica.version += 1
        if (after := replica.next_event()) is not None:
            self._at(after, replica.number, replica.version)


def simulate(trace: Sequence[Conversation], machine: Machine, replicas: int, router: str, seed: int = 0) -> Outcome:
    """Have a fleet answer a trace; every request is answered once."""
    fleet = Fleet(machine, replicas, router, seed)
    for conversation in trace:
        fleet.comes(Job(conversation, 0, conversation.begins))
    fleet.run()
    return Outcome(tuple(fleet.done), tuple(each.busy for each in fleet.replicas))


def work_of(trace: Sequence[Conversation], machine: Machine) -> float:
    """Return a device's seconds for a trace of which no token is read twice, with all rows written at once."""
    seconds = 0.0
    step = machine.step(machine.rows) / machine.rows
    for conversation in trace:
        known = conversation.shared
        for request in conversation.requests:
            seconds += max(1, request.prompt - known) / machine.prefill + request.answer * step
            known = request.prompt + request.answer
    return seconds


def agents(
    replicas: int, conversations: int, load: float, machine: Machine, seed: int, shape: Shape
) -> list[Conversation]:
    """Return as many made-up conversations as keep so many replicas loaded by so much."""
    trace = made_up(conversations * replicas, 1.0, seed, shape)
    seconds = work_of(trace, machine) / (load * replicas)
    return [replace(each, begins=each.begins * seconds) for each in trace]


def measured(model: str) -> Machine:
    """Return the machine that this one is with a model: prompts and steps timed in an engine, the best of three."""
    from langchain_gemma_jax import Sampling, engine

    served = engine().load(model)
    length, tokens, drawn = min(1024, served.max_context // 2), 32, random.Random(0)
    rows = (1, 2, 4, 8)

    def prompt(count: int) -> list[int]:
        return [drawn.randrange(300, 3000) for _ in range(count)]

    def read() -> float:
        one = engine().submit(served, prompt(length), Sampling(max_tokens=1, temperature=0, ignore_eos=True))
        return float(one.result().timings.prefill_s)

    def step(at_once: int) -> float:
        greedy = Sampling(max_tokens=tokens, temperature=0, ignore_eos=True, drafts=False)
        streams = [iter(engine().submit(served, prompt(16), greedy)) for _ in range(at_once)]
        for stream in streams:
            next(stream)
        before = engine().report()
        for stream in streams:
            for _ in stream:
                pass
        after = engine().report()
        spent = (after.host_s + after.dispatch_s + after.device_s) - (
            before.host_s + before.dispatch_s + before.device_s
        )
        return float(spent / max(1, after.steps - before.steps))

    found = {each: min(step(each) for _ in range(4)) for each in rows}
    steps = tuple((each, max(seconds, found[1])) for each, seconds in found.items())
    return Machine(prefill=length / min(read() for _ in range(4)), steps=steps)


def table(replicas: Sequence[int], options: argparse.Namespace, machine: Machine) -> list[str]:
    """Return the lines of a table."""
    found = [
        "| replicas | router | reused | first token, p50 | p95 | device seconds for 1,000 answers | busiest / mean |",
        "|---|---|---|---|---|---|---|",
    ]
    given = None if options.trace is None else read_file(options.trace)
    for count in replicas:
        trace = given or agents(count, options.conversations, options.load, machine, options.seed, Shape())
        for router in ROUTERS:
            told = simulate(trace, machine, count, router, options.seed).figures
            found.append(
                f"| {count} | {router} | {told['hit']:.0%} | {told['p50']:.2f} s | {told['p95']:.2f} s | "
                f"{told['cost']:.0f} | {told['uneven']:.2f} |"
            )
            if options.watch:
                print(found[-1], file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulation."""
    parser = argparse.ArgumentParser(prog="benchmarks/fleet/fleet.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--conversations", type=int, default=60, help="for each replica")
    parser.add_argument("--load", type=float, default=0.6, help="of made-up agents; 1.0 is all that is possible")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trace", type=Path, help="a JSONL file instead of made-up agents")
    parser.add_argument("--figures", type=Path, help="a JSON file of how fast a replica is")
    parser.add_argument("--measure", metavar="MODEL", help="measure such figures here, and print them")
    parser.add_argument("--watch", action="store_true", help="tell each line as soon as it is there")
    options = parser.parse_args(arguments)
    if min(*options.replicas, options.conversations, options.load) <= 0:
        parser.error("--replicas, --conversations, --load: expected numbers above 0")
    if options.measure is not None:
        machine = measured(options.measure)
        print(json.dumps({name: getattr(machine, name) for name in Machine.__dataclass_fields__}))
        return 0
    try:
        machine = Machine() if options.figures is None else machine_of(json.loads(options.figures.read_text()))
        print("\n".join(table(options.replicas, options, machine)))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
