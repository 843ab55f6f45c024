"""Time the first token behind a long system prompt after a restart, from the disk and by reading it again.

    python benchmarks/memory/prefixes.py
    python benchmarks/memory/prefixes.py --rounds 5 --model ./my-gemma

Each round is two processes: the first reads a system prompt with its tools that nobody ever read, and writes it to the
disk; the second is asked the same. Both have run their programs once, for another scope, before the clock starts. With
``--shared`` they are two machines: each has a cache of its own, and the prefixes are on a folder that both mount. With
``--peers`` they have none in common, and the second asks the first one's server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.memory.memory import BUILT, MODELS, checkpoint
from benchmarks.running.command import positive
from benchmarks.running.machine import machine

ROOT = Path(__file__).parents[2]
SYSTEM, QUESTION, ANSWER = 4096, 24, 8  # tokens
BAR = 0.25
FOUND = "found: "
WRITTEN_SECONDS, CALM = 60.0, 20  # at most; tenths of a second without another file


@dataclass
class PrefixTimes:
    """The seconds to the first token of each round."""

    read: list[float] = field(default_factory=list)  # by reading the prompt
    back: list[float] = field(default_factory=list)  # after a restart
    nbytes: list[int] = field(default_factory=list)  # of the disk
    same: int = 0  # rounds in which both answers were the same tokens
    reused: list[int] = field(default_factory=list)  # tokens that came from the disk

    @property
    def ratio(self) -> float:
        """Return how long a restart takes beside reading: the middle one of the rounds' ratios."""
        return median(back / read for back, read in zip(self.back, self.read, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/memory/prefixes.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=positive, default=3, help="3 by default")
    parser.add_argument("--model", type=Path, help="a model's folder; by default random weights of the 270M's shape")
    parser.add_argument("--encrypted", action="store_true", help="encrypt what is written")
    parser.add_argument("--shared", action="store_true", help="on a folder that two machines mount; encrypted too")
    parser.add_argument("--peers", action="store_true", help="over HTTP from the first one's server; encrypted too")
    parser.add_argument("--child", metavar="JOB", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(json.loads(options.child))
        return 0
    folder = options.model or checkpoint(BUILT / "gemma-3-270m", MODELS["gemma-3-270m"])
    with tempfile.TemporaryDirectory(prefix="gemma-jax-prefixes-") as scratch:
        sealed = options.encrypted or options.shared or options.peers
        how = {"encrypted": sealed, "shared": options.shared, "peers": options.peers}
        found = measure(folder, options.rounds, Path(scratch), **how)
    print(report(found, options.rounds))
    return 0 if found.ratio <= BAR and found.same == options.rounds else 1


def measure(
    folder: Path, rounds: int, scratch: Path, *, encrypted: bool, shared: bool = False, peers: bool = False
) -> PrefixTimes:
    """All rounds, with a store of their own."""
    key = None
    if encrypted:
        key = scratch / "key"
        key.write_bytes(os.urandom(48).hex().encode())
        key.chmod(0o600)
    found = PrefixTimes()
    for number in range(rounds):
        mounted = scratch / "mounted" if shared else None
        job = {"folder": str(folder), "seed": number, "key": None if key is None else str(key)}
        if mounted is not None:
            mounted.mkdir(exist_ok=True)
            job["shared"] = str(mounted)
        with in_a_process({**job, "write": True, "peers": [] if peers else None}, scratch / "one") as first:
            there = [first["url"]] if peers else None
            place = scratch / (f"other-{number}" if peers else "other" if shared else "one")
            with in_a_process({**job, "write": False, "peers": there}, place) as second:
                pass
        print(f"round {number + 1} of {rounds}: {first['seconds']:.3f} s read, {second['seconds']:.3f} s back",
              file=sys.stderr, flush=True)  # fmt: skip
        found.read.append(float(first["seconds"]))
        found.back.append(float(second["seconds"]))
        found.nbytes.append(int(second["nbytes"]))
        found.reused.append(int(second["reused"]))
        found.same += first["ids"] == second["ids"]
    return found


@contextmanager
def in_a_process(job: Mapping[str, object], cache: Path) -> Iterator[Mapping[str, Any]]:
    """Do a job in a process of its own, which lives as long as the block. Yields what it found."""
    with subprocess.Popen(
        [sys.executable, __file__, "--child", json.dumps(job)],
        env={
            **os.environ,
            "GEMMA_JAX_CACHE_DIR": str(cache),
            "GEMMA_JAX_COMPILE_CACHE": str(BUILT / "xla"),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        told, heard = process.stdin, process.stdout
        said = None if heard is None else next((line for line in heard if line.startswith(FOUND)), None)
        if said is None or told is None:
            raise RuntimeError(f"a process of the benchmark ended with {process.wait()} and said nothing.")
        yield json.loads(said.removeprefix(FOUND))
        told.close()
        if process.wait():
            raise RuntimeError(f"a process of the benchmark ended with {process.returncode}.")


def child(job: Mapping[str, object]) -> None:
    """Say what the first token behind the system prompt took, and what came from where; live until stdin ends."""
    from langchain_gemma_jax import engine

    found = first_token(job)
    if job["peers"] is None or not job["write"]:
        engine().close(30)
        print(FOUND + json.dumps(found), flush=True)
        return
    from langchain_gemma_jax.server.apis.caller import ServedModels
    from langchain_gemma_jax.server.app import GemmaJaxApp
    from langchain_gemma_jax.server.http.limits import ServerLimits
    from langchain_gemma_jax.server.http.listening import listen_at_port
    from langchain_gemma_jax.server.readiness import Readiness
    from langchain_gemma_jax.server.running import RunningServer

    limits, listening = ServerLimits(drain_s=1), listen_at_port("127.0.0.1", 0)
    app = GemmaJaxApp(ServedModels((str(job["folder"]),)), None, limits, Readiness(()))
    with RunningServer(app, listening, limits) as server:
        print(FOUND + json.dumps({**found, "url": server.listening.shown}), flush=True)
        sys.stdin.read()
    engine().close(30)


def first_token(job: Mapping[str, object]) -> Mapping[str, object]:
    """Ask for the first token behind the system prompt, in a process that may have been there before."""
    from langchain_gemma_jax import Sampling, configure, engine

    configure(
        prefix_peers=job["peers"],
        prefix_store="4GB",
        prefix_folder=job.get("shared"),
        prefix_key_file=job["key"],
        guards="off",
        host_kv_bytes=0,
    )
    running = engine()
    served = running.load(str(job["folder"]))
    chosen = random.Random(f"{job['seed']}")

    def ids(count: int, source: random.Random) -> list[int]:
        return [source.randrange(1000, 200_000) for _ in range(count)]

    prompt = [2, *ids(SYSTEM - 1 + QUESTION, chosen)]
    sampling = Sampling(max_tokens=ANSWER, ignore_eos=True)
    other = [2, *ids(SYSTEM - 1 + QUESTION, random.Random())]
    running.submit(served, other, sampling, scope="programs").result()  # they are fetched, or compiled
    running.submit(served, other[: SYSTEM + 1] + other[3:27], sampling, scope="programs", system=0).result()
    before = running.report().prefixes_written
    done = running.submit(served, prompt, sampling, scope="an app", system=SYSTEM).result()
    if job["write"]:
        until, calm = time.monotonic() + WRITTEN_SECONDS, 0
        while calm < CALM and time.monotonic() < until:
            time.sleep(0.1)
            now = running.report().prefixes_written
            calm, before = (0 if now != before or not now else calm + 1), now
    report = running.report()
    return {
        "seconds": done.timings.first_token_s,
        "ids": list(done.ids),
        "reused": done.reused_tokens,
        "nbytes": report.prefix_bytes_read,
    }


def report(found: PrefixTimes, rounds: int) -> str:
    """The result of the rounds as sentences."""
    read, back = median(found.read), median(found.back)
    said = "reached" if found.ratio <= BAR else f"**missed** by {found.ratio / BAR - 1:.0%}"
    size, here = median(found.nbytes) / 1e6, machine()
    return (
        f"{here['processor']}, {here['cores']} cores, Python {here['python']}\n"
        f"first token behind {SYSTEM} tokens of system prompt and tools, {rounds} rounds:\n"
        f"  read again                {read:.3f} s\n"
        f"  kept, by another process  {back:.3f} s ({size:.1f} MB, {median(found.reused):.0f} tokens)\n"
        f"  ratio                     {found.ratio:.3f} (at most {BAR}: {said})\n"
        f"  same answers              {found.same} of {rounds}"
    )


if __name__ == "__main__":
    sys.exit(main())
