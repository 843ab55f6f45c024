"""Time models that come back into memory, and conversations that come back to the device.

    make bench-memory
    make bench-memory ARGS="--rounds 3 --models gemma-3-270m"

A swap is measured beside its floor: reading the same bytes from the page cache and putting them on the device.
A conversation that was kept in host memory is measured beside reading its tokens again.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from benchmarks.running.report import bars_table
from benchmarks.work.checkpoint import CONFIG, draw, shapes
from benchmarks.work.vocabulary import write_tokenizer

if TYPE_CHECKING:
    from langchain_gemma_jax import Engine, Served

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "memory"
BLOCK = Block("memory figures", "make bench-memory")
LAYERS = 26
ONE_B: Mapping[str, object] = {
    **CONFIG,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_hidden_layers": LAYERS,
    "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(LAYERS)],
}
MODELS: Mapping[str, Mapping[str, object]] = {"gemma-3-1b": ONE_B, "gemma-3-270m": CONFIG}
TOKENS, MORE, CONTEXT = 1000, 16, 2048  # of a conversation; that come behind it; that fit
PIECE, ALIGNMENT = 64 << 20, 64  # bytes
SWAP_BAR, RETURN_BAR = 1.3, 0.2


@dataclass
class Times:
    """Seconds of the rounds."""

    nbytes: int
    floor: list[float] = field(default_factory=list)  # the bytes, from the page cache to the device
    swap: list[float] = field(default_factory=list)  # load() of an evicted model
    first_token: list[float] = field(default_factory=list)  # a request for an evicted model, to its first token
    leave: list[float] = field(default_factory=list)  # evicting it
    again: list[float] = field(default_factory=list)  # a conversation that is read again, to the next token
    back: list[float] = field(default_factory=list)  # one that comes back from the host, to the next token
    kv_bytes: int = 0  # of a conversation
    restored: int = 0  # rounds in which it came back from the host, and was not read again


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="benchmarks/memory/memory.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=5, help="5 by default")
    parser.add_argument("--models", default="gemma-3-270m,gemma-3-1b", help=f"some of {','.join(MODELS)}")
    report_options(parser)
    options = parser.parse_args(arguments)
    names = options.models.split(",")
    if unknown := set(names) - set(MODELS):
        parser.error(f"--models: expected some of {', '.join(MODELS)}, found {', '.join(sorted(unknown))}")
    os.environ["GEMMA_JAX_COMPILE_CACHE"] = str(BUILT / "xla")
    others = Others()
    found = {name: measure(checkpoint(BUILT / name, MODELS[name]), options.rounds) for name in names}
    text = report(found, options.rounds, others.cores_used())
    publish(text, BLOCK, options, bars=rows(found))
    return 0


def checkpoint(folder: Path, config: Mapping[str, object]) -> Path:
    """Random weights in bfloat16, made unless they are there."""
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: draw(name, shape, 0).astype(ml_dtypes.bfloat16) for name, shape in shapes(config)}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        write_tokenizer(folder)
        (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
    return folder


def measure(folder: Path, rounds: int) -> Times:
    """All rounds of one model, in an engine of its own."""
    from benchmarks.work.bare_programs import bare_shape
    from langchain_gemma_jax import configure, engine
    from langchain_gemma_jax.engine.api.model_estimate import bytes_of_conversation
    from langchain_gemma_jax.models.checkpoint.folder import open_folder
    from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
    from langchain_gemma_jax.models.recipes import Recipe

    shape = bare_shape(Gemma(open_folder(folder)[0]), Recipe("bfloat16"), CONTEXT, chunk=CONTEXT)
    one = bytes_of_conversation(shape, CONTEXT)
    # Room for one conversation and a half: another one has it moved to the host.
    configure(max_context=CONTEXT, kv_bytes=one * 3 // 2, guards="off")
    running = engine()
    served = running.load(folder)
    found = Times((folder / "model.safetensors").stat().st_size)
    prompt = [2, *(4 + number * 7919 % 50_000 for number in range(TOKENS))]
    # What is compiled now is on the disk ever after.
    ask(running, served, [*prompt, *ask(running, served, prompt, "warm")[0], *prompt[1:MORE]], "warm")
    ask(running, served, prompt[:MORE], "warm too")
    for number in range(rounds):
        print(f"{folder.name}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        leave(running, served, found)
        ready(folder / "model.safetensors")
        found.floor.append(floor(folder / "model.safetensors"))
        ready(folder / "model.safetensors")
        began = time.perf_counter()
        running.load(folder)
        found.swap.append(time.perf_counter() - began)
        leave(running, served, found)
        began = time.perf_counter()
        ask(running, served, prompt[:MORE], f"short {number}")
        found.first_token.append(time.perf_counter() - began)
        ask(running, served, [*prompt, *ask(running, served, prompt, "hot")[0], *prompt[1:MORE]], "hot")
        # A conversation, another one of the same text that takes its place, and the first one again.
        history = [*prompt, *ask(running, served, prompt, f"kept {number}")[0], *prompt[1:MORE]]
        found.again.append(ask(running, served, history, f"again {number}")[1])
        restored = running.report().restored
        found.back.append(ask(running, served, history, f"kept {number}")[1])
        found.restored += running.report().restored - restored
        found.kv_bytes = one
    running.unload(served)
    running.close()
    gc.collect()
    return found


def ask(running: Engine, served: Served, prompt: Sequence[int], scope: str) -> tuple[tuple[int, ...], float]:
    """The next tokens, and the seconds until the first of them."""
    from langchain_gemma_jax import Sampling

    done = running.submit(served, prompt, Sampling(max_tokens=2, ignore_eos=True), scope=scope).result()
    return done.ids, done.timings.first_token_s


def leave(running: Engine, served: Served, found: Times) -> None:
    """Have a model leave, and wait until it has."""
    before = running.report().eviction_log[-1:]
    running.evict(served)
    while not served.model.closed or running.report().eviction_log[-1:] == before:
        time.sleep(0.001)
    found.leave.append(running.report().eviction_log[-1].seconds)


def ready(file: Path) -> None:
    """Have the same start for what is measured next: the file in the page cache, and as much memory used and freed.

    A virtual machine gives pages that were free for two seconds back to its host. Touching them anew takes up to ten
    times as long as reading into those that were freed just now.
    """
    buffer = bytearray(1 << 20)
    with file.open("rb", buffering=0) as bytes_of:
        while bytes_of.readinto(buffer):
            pass
    pieces = [np.ones(PIECE, np.uint8) for _ in range(2 * file.stat().st_size // PIECE + 1)]
    del pieces


def floor(file: Path) -> float:
    """Read a file from the page cache, and put its bytes on the device."""
    import jax

    device = jax.local_devices()[0]
    began, placed = time.perf_counter(), []
    with file.open("rb", buffering=0) as bytes_of:
        while True:
            room = np.empty(PIECE + ALIGNMENT, np.uint8)
            buffer = room[-room.ctypes.data % ALIGNMENT :][:PIECE]  # which JAX takes over on a CPU, and does not copy
            if not (got := bytes_of.readinto(buffer.data)):
                break
            placed.append(jax.device_put(buffer[:got], device))
    jax.block_until_ready(placed)
    took = time.perf_counter() - began
    for array in placed:
        array.delete()
    return took


def report(found: Mapping[str, Times], rounds: int, others: float | None) -> str:
    """Tables for the page."""
    facts, busy = machine(), f"Others used {others or 0.0:.2f} cores meanwhile."
    lines = [
        f"{facts['processor']}, {facts['cores']} cores, bfloat16; medians of {rounds} rounds. {busy}",
        "",
        bars_table(rows(found)),
    ]
    for name, times in found.items():
        sizes = f"{times.nbytes / 1e9:.2f} GB of weights, a conversation of {times.kv_bytes / 1e6:.0f} MB"
        first = f"a request for the evicted model has its first token after {median(times.first_token):.2f} s"
        back = f"{times.restored} of {len(times.back)} came back from the host"
        lines += ["", f"{name}: {sizes}; {back}; evicted in {median(times.leave):.3f} s; {first}."]
    return "\n".join(lines)


def rows(found: Mapping[str, Times]) -> list[Row]:
    """The bars of this benchmark, and how far each was reached."""
    return [
        row
        for name, times in found.items()
        for row in (
            _row("load() of an evicted model", name, times.swap, "its bytes, read and put", times.floor, SWAP_BAR),
            _row(f"go on, {TOKENS} tokens on the host", name, times.back, "read again", times.again, RETURN_BAR),
        )
    ]


def _row(work: str, name: str, ours: list[float], beside: str, theirs: list[float], bar: float) -> Row:
    ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
    return Row(
        work,
        name,
        f"{median(ours):.3f} s",
        f"{beside}: {median(theirs):.3f} s",
        ratio,
        f"≤ {bar:g} ×",
        verdict(ratio / bar - 1),
    )


if __name__ == "__main__":
    sys.exit(main())
