"""Mixed traffic of several tenants on two models that do not fit together, for minutes, and what must not come of it.

    make soak
    make soak ARGS="--minutes 15"

Each minute says what the process holds, and what its memory consists of.
The verdict at the end, and the exit status with it: memory is flat, threads
and descriptors are as many as at the start, no tenant's words are in any log, file or other tenant's error, and greedy
answers are those of a process that had read nothing before. It ends by itself.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.soak.soak_memory import memory_parts
from benchmarks.soak.soak_traffic import MODELS, PATIENCE, Tenant, Traffic, fork, new_tenant, questions
from benchmarks.soak.soak_watch import Findings, Sample, Secrets, verdict, watch
from langchain_gemma_jax import Ladders, configure, engine

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "soak"
TENANTS, THREADS, LOOPS = 3, 3, 1
LADDERS = Ladders(chunks=(16, 128), capacities=(512, 1024), rows=(1, 4), draft=0)
HOST_KV = 48 << 20  # bytes of host memory for conversations
TO_SPARE = 8 << 20  # bytes of the budget beside the larger model: the smaller one does not fit beside it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(prog="benchmarks/soak/soak.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=_minutes, default=15.0, help="15 by default; memory settles for up to 5")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is asked when")
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    os.environ["GEMMA_JAX_COMPILE_CACHE"] = str(BUILT / "xla")
    if options.cold:
        json.dump(cold_answers([Tenant(secret) for secret in json.load(sys.stdin)]), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory(prefix="gemma-jax-soak-") as scratch:
        folder = Path(scratch)
        os.environ["GEMMA_JAX_CACHE_DIR"] = str(folder / "cache")
        with log_capture(folder) as (console, logs):
            return soak(options.minutes, options.seed, folder, logs, console)


def soak(minutes: float, seed: int, folder: Path, logs: Sequence[Path], console: IO[str]) -> int:
    """The whole of it: cold answers, a rehearsal, the traffic, the verdict. Gives the exit status."""

    def say(text: str) -> None:
        console.write(f"{text}\n")
        console.flush()

    tenants = [new_tenant() for _ in range(TENANTS)]
    findings = Findings(Secrets({tenant.scope: tenant.secret for tenant in tenants}))
    say(f"seed {seed}; a cold run, in a process of its own")
    cold = cold_run(tenants)
    say("a rehearsal: programs are compiled or fetched")
    set_up()
    rehearsal = Traffic(tenants, cold, findings)
    rng = random.Random(seed)
    for kind in rehearsal.kinds() * 2:
        rehearsal.one(kind, rng)
    run_for(rehearsal, seed, 5.0)
    start = at_rest()
    say(f"start: {shown(start)}; {findings.line()}")
    say(f"  memory: {memory_parts(engine().report())}")

    def minutely(sample: Sample) -> None:
        for log in logs:
            findings.found(log.name, findings.secrets.in_log(log))
        fork(findings)
        gc.collect()
        say(f"minute {int(sample.minute)}: {shown(sample)}; {findings.line()}")
        say(f"  memory: {memory_parts(engine().report())}")

    traffic = Traffic(tenants, cold, findings)
    with running(traffic, seed, findings):
        samples = watch(minutes, Sample.now, minutely)
    end = at_rest(start)
    if minutes < 1:
        fork(findings)
    report = engine().report()
    say(f"end: {shown(end)}; {findings.line()}; {report.models_evicted} evictions, {report.loads} loads")
    say(f"  memory: {memory_parts(report)}")
    for handler in logging.getLogger().handlers:
        handler.flush()
    for log in logs:
        findings.found(log.name, findings.secrets.in_log(log))
    for place in (folder / "cache", BUILT):
        for file in findings.secrets.in_folder(place):
            findings.found("a file", [file])
    text, held = verdict(samples, start, end, findings, minutes)
    say(text)
    return 0 if held else 1


def set_up() -> None:
    """Both models, with a budget that has them evict each other."""
    # Conversations of models that left are kept on the host, up to its own budget: one that is full before we look.
    configure(ladders=LADDERS, max_context=1024, guards="warn", host_kv_bytes=HOST_KV)
    for model in MODELS:
        engine().warmup(model, max_context=1024, progress=False)
    needs = [status.nbytes for status in engine().models()]
    configure(memory_budget=max(needs) + TO_SPARE)


def cold_run(tenants: Sequence[Tenant]) -> Mapping[str, str]:
    """Return what a fresh process says to each greedy question, by its name."""
    command = [sys.executable, str(Path(__file__)), "--cold"]
    asked = json.dumps([tenant.secret for tenant in tenants])
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    found: Mapping[str, str] = json.loads(done.stdout)
    return found


def cold_answers(tenants: Sequence[Tenant]) -> dict[str, str]:
    """The same, in that process: each question in a scope of its own, where nothing was read."""
    configure(ladders=LADDERS, max_context=1024)
    asked = [each for tenant in tenants for model in MODELS for each in questions(tenant, model)]
    return {key: ask(f"cold {number}") for number, (key, ask) in enumerate(asked)}


@contextmanager
def running(traffic: Traffic, seed: int, findings: Findings) -> Iterator[None]:
    """Have threads and event loops ask, until the block ends."""
    threads = [threading.Thread(target=traffic.live, args=(seed + number,), daemon=True) for number in range(THREADS)]
    threads += [
        threading.Thread(target=traffic.live_in_loop, args=(seed + 100 * number,), daemon=True)
        for number in range(1, LOOPS + 1)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        traffic.stop.set()
        until = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if hanging := sum(thread.is_alive() for thread in threads):
            findings.unexpected.append(f"{hanging} threads of the traffic did not end within {PATIENCE:g} s")


def run_for(traffic: Traffic, seed: int, seconds: float) -> None:
    """All of the traffic, for a moment: threads and event loops have been there once."""
    with running(traffic, seed, traffic.findings):
        time.sleep(seconds)


def at_rest(wanted: Sample | None = None, within: float = 20.0) -> Sample:
    """Sample what is held when nothing is asked any more. Threads that are about to end have some time for it."""
    until = time.monotonic() + within
    while True:
        time.sleep(1.0)
        gc.collect()
        found = Sample.now(0.0)
        if time.monotonic() > until or (
            wanted is not None and found.threads <= wanted.threads and found.files <= wanted.files
        ):
            return found


@contextmanager
def log_capture(folder: Path) -> Iterator[tuple[IO[str], list[Path]]]:
    """Everything that is logged at any level, warned of, or written to the standard streams, in files.

    Gives the console that there was before, and the files.
    """
    logs = [folder / name for name in ("stdout.txt", "stderr.txt", "log.txt")]
    root = logging.getLogger()
    level, handler = root.level, logging.FileHandler(logs[2])
    before = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    for number, log in ((1, logs[0]), (2, logs[1])):
        with log.open("ab") as opened:
            os.dup2(opened.fileno(), number)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(), os.fdopen(os.dup(before[0]), "w") as console:
            warnings.simplefilter("always")
            yield console, logs
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
        sys.stdout.flush()
        sys.stderr.flush()
        for number, old in ((1, before[0]), (2, before[1])):
            os.dup2(old, number)
            os.close(old)


def shown(sample: Sample) -> str:
    """Say what is held, in short."""
    return f"{sample.rss:.0f} MiB, {sample.threads} threads, {sample.files} descriptors"


def _minutes(text: str) -> float:
    value = float(text)
    if not 0 < value <= 24 * 60:
        raise argparse.ArgumentTypeError(f"expected minutes, above 0 and up to a day, found {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
