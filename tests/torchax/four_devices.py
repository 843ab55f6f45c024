"""A process with four simulated devices, in which one folder is served by one of them and, divided, by more.

    python tests/torchax/four_devices.py FOLDER 1 2 4

Prints a line of JSON: what is said, and the bytes of weights and of a conversation on each device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROMPTS = [list(range(20, 20 + length)) for length in (5, 21, 40)]


def start(folder: Path, *counts: int) -> dict[str, Any]:
    """Run such a process, and return what it printed."""
    settings = {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "GEMMA_JAX_COMPILE_CACHE": "off",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), str(folder), *map(str, counts)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"the process ended with {done.returncode}: {done.stderr[-6000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def served(folder: str, count: int) -> dict[str, Any]:
    """Return the answers of the model on this many devices."""
    import jax

    from langchain_gemma_jax import Ladders, Sampling
    from langchain_gemma_jax.engine.api.engine import Engine
    from langchain_gemma_jax.engine.base.settings import Settings

    ladders = Ladders(chunks=(16,), capacities=(128,), rows=(1, 4), draft=4)
    engine = Engine(Settings(ladders=ladders, guards="raise", drafts=True))
    known = engine.load(f"torchax:{folder}", devices=count)
    model = known.model
    greedy = Sampling(max_tokens=24, ignore_eos=True)
    together = [engine.submit(known, prompt, greedy, scope=str(number)) for number, prompt in enumerate(PROMPTS)]
    answers = [list(one.result().ids) for one in together]
    longer = [*PROMPTS[0], *answers[0], 7, 8, 9]
    again = engine.submit(known, longer, greedy, scope="0").result()
    shards = [shard for array in model.params.values() for shard in array.addressable_shards]
    arrays = [array for array in jax.live_arrays() if array.ndim == 4 and array.dtype == "float32"]  # keys and values
    found = {
        "answers": [*answers, list(again.ids)],
        "reused": again.reused_tokens,
        "weights": [sum(one.data.nbytes for one in shards if one.device == each) for each in jax.devices()[:count]],
        "foretold": model.placement.nbytes(model.architecture.abstract(model.recipe)),
        "whole": model.nbytes,
        "kv": sorted({array.sharding.shard_shape(array.shape)[1] for array in arrays}),
        "programs": engine.report().programs,
        "bound": engine.report().program_bound,
    }
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    return found


def main(folder: str, *counts: str) -> None:
    """Print what is seen on each number of devices."""
    print(json.dumps({count: served(folder, int(count)) for count in counts}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
