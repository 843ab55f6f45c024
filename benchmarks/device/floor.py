"""Find what a GPU's decode step costs besides its bytes: half the layers against all, command buffers, fixed loops.

    python benchmarks/device/floor.py --size gemma-3-4b --json floor.json

Ten minutes on one GPU. A step of one row is timed with all layers of a size and with half of them, at the same width:
the difference is the price of a layer, and what is left is the price of a step. Each way to run the steps has a process
of its own, as XLA reads its flags once: command buffers off, by default, and with loops; the engine's loop, which stops
when its rows end, and a loop of a fixed number of steps. The operations of a step are counted in the compiled program.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.running.command import positive

WAYS = ("bfloat16", "int8", "int4")
STEPS, CALLS, CAPACITY, BEHIND = 8, 12, 4096, 2048
LOOPS = ("until its rows end", "fixed")
_BUFFERS = "--xla_gpu_enable_command_buffer="
FLAGS: Mapping[str, str] = {  # by what a table calls them
    "default": "",
    "off": _BUFFERS,
    "with loops": f"{_BUFFERS}+WHILE --xla_gpu_command_buffer_unroll_loops=true",
}
FOUND = "found: "
# Instructions that move no bytes: names for parts of others.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "iota", "after-all"}
_OPCODE = re.compile(r"= (?:\([^=]*\)|\S+) ([a-z][a-z0-9-]*)\(")


@dataclass(frozen=True)
class Timed:
    """One way to store weights and to run steps, with so many layers."""

    weights: str
    buffers: str
    loop: str
    layers: int
    step: float  # seconds
    nbytes: int  # of the weights
    bandwidth: float  # bytes a second
    operations: Mapping[str, int]  # of a step, by opcode

    @property
    def by_bytes(self) -> float:
        """The seconds in which the weights can be read."""
        return self.nbytes / self.bandwidth


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment; the exit status is 1 if there is no accelerator, unless it was asked to go on."""
    options = parse(arguments)
    if options.child is not None:
        print(FOUND + json.dumps(asdict(child(json.loads(options.child), cpu=options.cpu))))
        return 0
    found = list[Timed]()
    for weights in options.weights:
        for buffers, loop in ((name, loop) for name in FLAGS for loop in LOOPS):
            half = in_a_process(options, weights, buffers, loop, half=True)
            whole = None if half is None else in_a_process(options, weights, buffers, loop, half=False)
            if half is None or whole is None:
                return 1
            found += [half, whole]
            print(line(half, whole), flush=True)
    print(table(found))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="benchmarks/device/floor.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", default="gemma-3-4b", help="gemma-3-4b by default")
    parser.add_argument("--weights", nargs="+", choices=WAYS, default=WAYS, help="all by default")
    parser.add_argument("--layers", type=positive, help="instead of all that the size has")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--cpu", action="store_true", help="go on where there is no accelerator")
    parser.add_argument("--child", metavar="JOB", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def in_a_process(options: argparse.Namespace, weights: str, buffers: str, loop: str, *, half: bool) -> Timed | None:
    """Time one way in a process of its own. None: there is no accelerator, and the process has said so."""
    job = {"size": options.size, "weights": weights, "buffers": buffers, "loop": loop, "half": half}
    job["layers"] = options.layers
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS[buffers]}".strip()
    command = [sys.executable, __file__, "--child", json.dumps(job), *(["--cpu"] if options.cpu else [])]
    done = subprocess.run(
        command, check=False, env={**os.environ, "XLA_FLAGS": flags}, stdout=subprocess.PIPE, text=True
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(FOUND)]
    return Timed(**json.loads(said[-1].removeprefix(FOUND))) if said else None


def child(job: Mapping[str, Any], *, cpu: bool) -> Timed:
    """Time the steps of one model, in this process."""
    import jax
    import numpy as np

    from benchmarks.device import accelerator
    from benchmarks.work.bare_programs import bare_shape, bare_tables, greedy_rows
    from langchain_gemma_jax.engine.device.programs import Programs
    from langchain_gemma_jax.models.configuration.catalog import published
    from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
    from langchain_gemma_jax.models.seams.params import leaves
    from langchain_gemma_jax.models.seams.placement import placement_of

    if jax.local_devices()[0].platform == "cpu" and not cpu:
        raise SystemExit("JAX finds no GPU or TPU here. `gemma-jax doctor` says why; --cpu goes on all the same.")
    config = published(job["size"])
    layers = config.layers[: job["layers"] or len(config.layers)]
    config = config.replace(layers=layers[: len(layers) // 2] if job["half"] else layers)
    recipe = accelerator.recipe_for(job["weights"])
    params = accelerator.drawn(config, recipe)
    shape = bare_shape(Gemma(config), recipe, CAPACITY, chunk=BEHIND, loop_steps=STEPS)
    programs, tables = Programs(shape, placement_of(None)), jax.device_put(bare_tables(shape))
    pool, greedy = programs.empty()(), jax.device_put(greedy_rows(config.vocab_size))
    numbers = np.full(1, 2000, np.int32), np.full(1, BEHIND, np.int32), np.full(1, STEPS, np.int32)
    tokens, ends, limits, stops = jax.device_put((*numbers, np.full((1, 16), -1, np.int32)))
    if job["loop"] == "fixed":
        given: tuple[Any, ...] = (params, tokens, ends, tables)
        run = jax.jit(partial(_fixed, shape), donate_argnums=4).lower(*given, pool, greedy).compile()
    else:
        given = (params, tokens, ends, limits, stops, tables)
        run = programs.loop.lower(*given, pool, greedy).compile()
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        *_, pool = jax.block_until_ready(run(*given, pool, greedy))
        took.append((time.perf_counter() - began) / STEPS)
    return Timed(
        weights=job["weights"],
        buffers=job["buffers"],
        loop=job["loop"],
        layers=len(config.layers),
        step=median(took[2:]),
        nbytes=sum(array.nbytes for array in leaves(params)),
        bandwidth=accelerator.bandwidth(accelerator.BUFFER if not cpu else accelerator.BUFFER >> 5),
        operations=operations(run.as_text() or ""),
    )


def _fixed(shape: Any, params: Any, tokens: Any, ends: Any, tables: Any, pool: Any, rows: Any) -> tuple[Any, Any]:
    """Run a fixed number of steps: a loop that a command buffer can hold."""
    import jax
    import jax.numpy as jnp

    from langchain_gemma_jax.engine.device.programs import _step

    def once(number: jax.Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
        picked, _, kept = _step(shape, params, state[0], ends + number, jnp.ones_like(ends), tables, state[1], rows)
        return picked.tokens, kept

    tokens, pool = jax.lax.fori_loop(0, STEPS, once, (tokens, pool))
    return tokens, pool


def operations(text: str) -> dict[str, int]:
    """Count the instructions of a step: those of the largest loop's body in a compiled program, by opcode."""
    bodies = re.split(r"\n(?=%|ENTRY|[a-z_.0-9]+ \()", text)
    counted = [Counter(op for op in _OPCODE.findall(body) if op not in _FREE) for body in bodies]
    called = {name for body in bodies for name in re.findall(r"body=%?([\w.-]+)", body)}
    loops = [count for body, count in zip(bodies, counted, strict=True) if _name(body) in called]
    largest = max(loops or counted, key=lambda count: count.total())
    return dict(largest)


def _name(body: str) -> str:
    found = re.match(r"(?:ENTRY )?%?([\w.-]+)", body)
    return "" if found is None else found[1]


def line(half: Timed, whole: Timed) -> str:
    """A row of the table."""
    layer = (whole.step - half.step) / (whole.layers - half.layers)
    rest = whole.step - layer * whole.layers
    bytes_of_layer = (whole.by_bytes - half.by_bytes) / (whole.layers - half.layers)
    count = sum(whole.operations.values())
    per_layer = (count - sum(half.operations.values())) / (whole.layers - half.layers)
    return (
        f"| {whole.weights} | {whole.buffers} | {whole.loop} | {1 / whole.step:,.0f} | {whole.step * 1e3:.2f} | "
        f"{whole.by_bytes * 1e3:.2f} | {layer * 1e6:,.0f} | {bytes_of_layer * 1e6:,.0f} | {per_layer:.1f} | "
        f"{rest * 1e3:.2f} |"
    )


def table(found: Sequence[Timed]) -> str:
    """The table, in Markdown."""
    names = (
        "weights", "command buffers", "loop", "tok/s", "step, ms", "its bytes, ms", "a layer, µs", "its bytes, µs",
        "operations a layer", "outside layers, ms",
    )  # fmt: skip
    pairs = zip(found[::2], found[1::2], strict=True)
    return "\n".join(["| " + " | ".join(names) + " |", "|" + " --- |" * len(names), *(line(*pair) for pair in pairs)])


if __name__ == "__main__":
    sys.exit(main())
