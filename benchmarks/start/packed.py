"""Time a fresh process with the real 270M to its tokens, and count its memory, beside llama.cpp and dense rivals.

    python benchmarks/start/packed.py
    python benchmarks/start/packed.py --rounds 5 --rivals llama
    python benchmarks/start/packed.py --shapes           larger shapes with random weights too; 7 GB of disk

The file is Q4_K_M, which ``scripts/real --fetch`` brings. The first process finds empty caches; the later ones find its
programs and its weights there. Plain JAX and transformers have the same weights in bfloat16. Memory is that after ten
growing turns, without work for two seconds; a second process is started while a first one holds the file.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.files.e_size_file import e_size_file
from benchmarks.files.random_files import random_file
from benchmarks.files.real_files import FILE, dense_folder
from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.contenders import ENVIRONMENTS, say
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block

ROOT = Path(__file__).parents[2]
STAGES = ("imports", "weights", "first token", "sixteenth", "ten turns")
MIB = 1 << 20
LARGE, ROWS = "4B shape, Q4_0", "2B-E shape, Q4_0"
SHAPES: Mapping[str, Callable[[], Path]] = {LARGE: partial(random_file, "4b", "Q4_0"), ROWS: e_size_file}
OF_LARGE, BESIDE_LARGE, OF_ROWS = 1.1, 300e6, 0.45
FIRST_EVER_S, LATER_S, PRIVATE_MIB, OF_LLAMA, SECOND_MIB, OF_PLAIN = 6.0, 0.5, 200, 1.4, 150, 1.3


@dataclass
class Found:
    """One process: seconds since it was asked for, by stage, and bytes at its end."""

    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="benchmarks/start/packed.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=3, help="of later processes; 3 by default")
    parser.add_argument(
        "--rivals", default="llama,dense,transformers", help="some of llama,dense,transformers, or none"
    )
    parser.add_argument("--shapes", action="store_true", help="a 4B and a 2B-E shape in Q4_0 too: their memory")
    report_options(parser)
    options = parser.parse_args(arguments)
    if not FILE.exists():
        parser.error(f"expected {FILE}, found none: scripts/real --fetch brings it")
    compileall.compile_dir(ROOT / "langchain_gemma_jax", quiet=2)  # as pip does when it installs a package
    others, facts = Others(), machine()
    found = measure(options.rounds, options.rivals.split(","))
    shapes = measure_shapes() if options.shapes else {}
    head = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}."
    lines = [f"{head} Others used {others.cores_used() or 0.0:.2f} cores meanwhile.", "", *table({**found, **shapes})]
    publish("\n".join(lines), Block("packed start figures", "python benchmarks/start/packed.py"), options,
            bars=[*rows(found), *rows_of_shapes(shapes)])  # fmt: skip
    return 0


def measure(rounds: int, rivals: Sequence[str]) -> dict[str, list[Found]]:
    """Processes by kind."""
    found: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        say("ours, empty caches")
        found["ours, first ever"] = [once("ours", FILE, scratch)]
        for number in range(rounds):
            say(f"ours, later, {number + 1} of {rounds}")
            found.setdefault("ours, later", []).append(once("ours", FILE, scratch))
        say("ours, a second one beside the first")
        with process("ours", FILE, scratch), process("ours", FILE, scratch) as second:
            found["ours, second at the same time"] = [second]
        if "llama" in rivals and (python := _environment("llama")):
            for number in range(rounds):
                say(f"llama.cpp, {number + 1} of {rounds}")
                found.setdefault("llama.cpp", []).append(once("llama", FILE, None, python))
        if {"dense", "transformers"} & {*rivals}:
            from langchain_gemma_jax import load_model

            with load_model(FILE, progress=False) as model:
                folder = dense_folder(model, "bfloat16")
            if "dense" in rivals:
                say("plain JAX")
                found["plain JAX, bfloat16"] = [once("dense", folder, None)]
            if "transformers" in rivals and (python := _environment("hf")):
                say("transformers")
                found["transformers, bfloat16"] = [once("transformers", folder, None, python)]
    return found


def measure_shapes() -> dict[str, list[Found]]:
    """Processes with larger shapes, after one request: each a later one, which maps its weights."""
    found = {}
    for name, file in SHAPES.items():
        with tempfile.TemporaryDirectory() as scratch:
            say(f"{name}, empty caches")
            once("briefly", file(), scratch)
            say(f"{name}, later")
            found[f"{name}, later"] = [once("briefly", file(), scratch)]
    return found


def _environment(name: str) -> str | None:
    python = ENVIRONMENTS / name / "bin" / "python"
    return str(python) if python.exists() else None


def once(what: str, source: Path, cache: str | None, python: str = sys.executable) -> Found:
    """One process, to its end."""
    with process(what, source, cache, python) as found:
        return found


@contextmanager
def process(what: str, source: Path, cache: str | None, python: str = sys.executable) -> Iterator[Found]:
    """A process that has measured everything, and still holds its memory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "GEMMA_JAX_"))}
    own = {} if cache is None else {"GEMMA_JAX_CACHE_DIR": cache}
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    found = Found()
    with subprocess.Popen(
        [python, str(ROOT / "benchmarks" / "start" / "packed_process.py"), what, str(source)],
        env=kept | own | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:  # its end closes the process's input, which ends it
        for line in running.stdout or ():
            said = json.loads(line)
            found.seconds[said.pop("at")] = said.pop("clock") - began
            if said:
                found.memory = said
                break
        else:
            raise RuntimeError(f"{what}: the process ended with {running.wait()} before it had measured its memory")
        yield found


def table(found: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """A row for each kind of process."""
    yield "| process | " + " | ".join((*STAGES, "resident", "private", "share")) + " |"
    yield "|---" * (len(STAGES) + 4) + "|"
    for name, each in found.items():
        times = [
            f"{median(one.seconds[stage] for one in each):.2f}" if stage in each[0].seconds else "" for stage in STAGES
        ]
        sizes = [f"{median(one.memory[part] for one in each) / MIB:.0f}" for part in ("resident", "private", "share")]
        yield f"| {name} | " + " | ".join(times + sizes) + " |"
    yield ""
    yield "Seconds since the process was asked for, and MiB at its end; medians."


def rows(found: Mapping[str, Sequence[Found]]) -> list[Row]:
    """The bars."""
    first, later = found["ours, first ever"][0], found["ours, later"]
    behind = median(one.seconds["first token"] - one.seconds["imports"] for one in later)
    private, resident = (median(one.memory[part] for one in later) / MIB for part in ("private", "resident"))
    second = found["ours, second at the same time"][0].memory["share"] / MIB
    bars = [
        Row("first token, first process ever", "Q4_K_M", f"{first.seconds['first token']:.1f} s", "–", None,
            f"≤ {FIRST_EVER_S:g} s", verdict(first.seconds["first token"] / FIRST_EVER_S - 1)),
        Row("first token behind the imports, later process", "Q4_K_M", f"{behind:.2f} s", "–", None,
            f"≤ {LATER_S:g} s", verdict(behind / LATER_S - 1)),
        Row("private memory after ten turns", "Q4_K_M", f"{private:.0f} MiB", "–", None,
            f"≤ {PRIVATE_MIB} MiB", verdict(private / PRIVATE_MIB - 1)),
        Row("a second process on the same file", "Q4_K_M", f"{second:.0f} MiB of its own and shared", "–", None,
            f"≤ {SECOND_MIB} MiB", verdict(second / SECOND_MIB - 1)),
    ]  # fmt: skip
    if "llama.cpp" in found:
        theirs = median(one.memory["resident"] for one in found["llama.cpp"]) / MIB
        bars.append(
            Row("resident memory after ten turns", "Q4_K_M", f"{resident:.0f} MiB", f"llama.cpp: {theirs:.0f} MiB",
                resident / theirs, f"≤ {OF_LLAMA:g} ×", verdict(resident / theirs / OF_LLAMA - 1))
        )  # fmt: skip
    if "plain JAX, bfloat16" in found:
        plain = found["plain JAX, bfloat16"][0].seconds["first token"]
        ratio = first.seconds["first token"] / plain
        bars.append(
            Row("first token, first process ever", "Q4_K_M", f"{first.seconds['first token']:.1f} s",
                f"plain JAX in bfloat16: {plain:.1f} s", ratio, f"≤ {OF_PLAIN:g} ×", verdict(ratio / OF_PLAIN - 1))
        )  # fmt: skip
    return bars


def rows_of_shapes(found: Mapping[str, Sequence[Found]]) -> list[Row]:
    """The bars of larger shapes."""
    bars = []
    for name, (one,) in found.items():
        shape = name.partition(", later")[0]
        file = SHAPES[shape]().stat().st_size
        most = OF_LARGE * file + BESIDE_LARGE if shape == LARGE else OF_ROWS * file
        asked = f"{OF_LARGE:g} × file + {BESIDE_LARGE / 1e6:g} MB" if shape == LARGE else f"{OF_ROWS:.0%} of the file"
        resident = one.memory["resident"]
        bars.append(
            Row("resident memory after a request", shape, f"{resident / MIB:.0f} MiB",
                f"the file: {file / MIB:.0f} MiB", resident / file, f"≤ {asked}",
                verdict(resident / most - 1))
        )  # fmt: skip
    return bars


if __name__ == "__main__":
    sys.exit(main())
