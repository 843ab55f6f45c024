"""Time a fresh process to its first token: with what was compiled before, without, and beside plain JAX.

    make bench-cold-start
    make bench-cold-start ARGS="--rounds 3 --models sprout-m"

The floor is what every process that uses JAX and LangChain pays: the two imports. Every process starts anew, and all of
one round run one after the other, so that ratios of a round compare what ran in the same minute.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from benchmarks.work.checkpoint import CONFIG, write_checkpoints
from benchmarks.work.vocabulary import write_tokenizer
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED, embedded_folder

ROOT = Path(__file__).parents[2]


def shipped(name: str) -> dict[str, object]:
    """The ``config.json`` of an embedded model, without the dtype of its weights."""
    folder = embedded_folder(name)
    read: dict[str, object] = json.loads((folder / "config.json").read_text()) if folder else {}
    return {key: value for key, value in read.items() if key != "dtype"}


MODELS: Mapping[str, Mapping[str, object]] = {**{name: shipped(name) for name in EMBEDDED}, "gemma-3-270m": CONFIG}
BLOCK = Block("cold start figures", "make bench-cold-start")
STAGES = ("import", "weights", "first token", "answer")
PROMPT, SHORT = 200, 16  # tokens
BAR, BAR_MODEL = 1.5, "sprout-m"
FIRST_EVER_BAR, READING_BAR_S = 1.1, 0.5

Times = dict[str, float]  # by stage, seconds since the process was asked for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/start/cold_start.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=positive, default=5, help="5 by default")
    parser.add_argument("--models", default="sprout-m,gemma-3-270m", help=f"some of {','.join(MODELS)}")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    report_options(parser)
    options = parser.parse_args(arguments)
    names = options.models.split(",")
    if unknown := set(names) - set(MODELS):
        parser.error(f"--models: expected some of {', '.join(MODELS)}, found {', '.join(sorted(unknown))}")
    others = Others()
    found = {name: measure(name, options.dtype, options.rounds) for name in names}
    text = report(found, options.dtype, options.rounds, others.cores_used())
    publish(text, BLOCK, options, bars=rows(found))
    return 0


def measure(name: str, dtype: str, rounds: int) -> dict[str, list[Times]]:
    """By kind of process: the times of each round. The first of ours fills the cache."""
    checkpoint = ROOT / "build" / "cold-start" / name
    if not (checkpoint / dtype / "tokenizer.json").exists():
        write_checkpoints(checkpoint, MODELS[name])
        for folder in checkpoint.iterdir():
            write_tokenizer(folder, size=int(str(MODELS[name]["vocab_size"])))
    compileall.compile_dir(ROOT / "langchain_gemma_jax", quiet=2)  # as pip does when it installs a package
    found: dict[str, list[Times]] = {kind: [] for kind in ("floor", "short", "warm", "cold", "plain")}
    with tempfile.TemporaryDirectory() as scratch:
        own, job = Path(scratch), (str(checkpoint / dtype), dtype)
        # Once unmeasured: then files are in memory, and the recipe is known.
        run("ours", *job, str(SHORT), cache=own / "short", own=own)
        for number in range(rounds):
            say(f"{name}: round {number + 1} of {rounds}")
            found["floor"].append(run("floor", cache=None, own=own))
            if number == 0:  # it takes long, and there is no noise that matters
                found["plain"].append(run("plain", *job, str(PROMPT), cache=None, own=own))
                found["cold"].append(run("ours", *job, str(PROMPT), cache=own / "long", own=own))
            found["warm"].append(run("ours", *job, str(PROMPT), cache=own / "long", own=own))
            found["short"].append(run("ours", *job, str(SHORT), cache=own / "short", own=own))
    return found


def run(what: str, *arguments: str, cache: Path | None, own: Path) -> Times:
    """One process. ``own`` is where recipes are remembered."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "GEMMA_JAX_"))
    }
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "start" / "cold_process.py", what, *arguments],
        env=inherited
        | {
            "GEMMA_JAX_CACHE_DIR": str(own / "recipes"),
            "GEMMA_JAX_COMPILE_CACHE": "off" if cache is None else str(cache),
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": str(ROOT),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {stage: at - began for stage, at in json.loads(done.stdout).items()}


def report(found: Mapping[str, Mapping[str, list[Times]]], dtype: str, rounds: int, others: float | None) -> str:
    """Tables for the page."""
    facts = machine()
    lines = [
        f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}, {dtype}; medians of {rounds} rounds.",
        f"Others used {others or 0.0:.2f} cores meanwhile. Seconds since the process was asked for.",
        "",
    ]
    for name, kinds in found.items():
        lines += [f"**{name}**", "", "| process | " + " | ".join(STAGES) + " | first token ÷ floor |", "|---" * 6 + "|"]
        floor = median(times["import"] for times in kinds["floor"])
        for kind, words in (
            ("floor", "`import jax, langchain_core`"),
            ("short", f"ours, compiled before, {SHORT} tokens"),
            ("warm", f"ours, compiled before, {PROMPT} tokens"),
            ("cold", f"ours, first ever, {PROMPT} tokens"),
            ("plain", f"plain JAX, {PROMPT} tokens"),
        ):
            times = {stage: median(t[stage] for t in kinds[kind]) for stage in kinds[kind][0]}
            cells = [f"{times[stage]:.2f}" if stage in times else "" for stage in STAGES]
            ratio = f"{times['first token'] / floor:.2f}" if "first token" in times else ""
            lines.append(f"| {words} | " + " | ".join(cells) + f" | {ratio} |")
        lines.append("")
        for kind, tokens in (("short", SHORT), ("warm", PROMPT)):
            ratios = [w["first token"] / f["import"] for w, f in zip(kinds[kind], kinds["floor"], strict=True)]
            said = f"{tokens} tokens, compiled before, round by round: {', '.join(f'{ratio:.2f}' for ratio in ratios)}."
            reached = "reached" if median(ratios) <= BAR else "missed"
            lines.append(f"{said} The bar is {BAR}: {reached}.\n" if name == BAR_MODEL else f"{said}\n")
    return "\n".join(lines).rstrip()


def rows(found: Mapping[str, Mapping[str, list[Times]]]) -> list[Row]:
    """The bars of this benchmark, and how far each was reached."""
    bars = []
    for name, kinds in found.items():
        middle = {kind: {stage: median(t[stage] for t in times) for stage in times[0]} for kind, times in kinds.items()}
        warm, cold, plain = (middle[kind]["first token"] for kind in ("warm", "cold", "plain"))
        ever, over = cold / plain, warm - middle["warm"]["weights"]
        bars += [
            Row("first token of the very first process", name, f"{cold:.2f} s", f"plain JAX: {plain:.2f} s", ever,
                f"≤ {FIRST_EVER_BAR} ×", verdict(ever / FIRST_EVER_BAR - 1)),
            Row("first token of a fresh process, behind the weights", name, f"{over:.2f} s", "–", None,
                f"≤ {READING_BAR_S} s", verdict(over / READING_BAR_S - 1)),
        ]  # fmt: skip
        if name == BAR_MODEL:
            ratio = median(w["first token"] / f["import"] for w, f in zip(kinds["short"], kinds["floor"], strict=True))
            bars.append(
                Row("first token of a fresh process", name, f"{middle['short']['first token']:.2f} s",
                    f"the two imports: {middle['floor']['import']:.2f} s", ratio, f"≤ {BAR} ×",
                    verdict(ratio / BAR - 1))
            )  # fmt: skip
    return bars


def say(text: str) -> None:
    """Print how far it is."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
