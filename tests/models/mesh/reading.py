"""A process with eight simulated devices that reads a model, and says what that took of the host's memory.

python tests/models/mesh/reading.py '{"folder": "/tmp/...", "counts": [1, 4]}'
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.load import load
from langchain_gemma_jax.models.recipes import Recipe
from tests import tiny_gemma


def main(folder: str, counts: Sequence[int]) -> dict[str, object]:
    """Read a model of some size, made up in this folder, onto so many devices."""
    tiny_gemma.CONFIG |= {"vocab_size": 8192, "hidden_size": 256, "intermediate_size": 4096}
    for name, content in tiny_gemma.tiny_gemma().items():
        Path(folder, name).write_bytes(content)
    # A simulated device would take over the host's memory, as one of its own never does.
    copy, original = jax.jit(jnp.copy), jax.device_put

    def copying(array: Any, where: Any) -> jax.Array:
        copied: jax.Array = jax.block_until_ready(copy(original(array, where)))
        gc.collect()  # when JAX lets go of what it no longer needs of numpy's
        return copied

    jax.device_put = copying
    found: dict[str, object] = {}
    for count in counts:
        load(folder, recipe=Recipe("float32"), devices=count, progress=False).close()  # what is compiled and kept
        tracemalloc.start()
        model = load(folder, recipe=Recipe("float32"), devices=count, progress=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        leaves = jax.tree.leaves(model.params)
        largest = max(array.nbytes for array in leaves)
        found[str(count)] = {
            "peak": peak,
            "largest": largest,
            "all": model.nbytes,
            "embedding": digest(model.params["embed"]),
        }
        model.close()
    return found


def digest(array: jax.Array) -> float:
    """What is the same of an array wherever it lies."""
    return float(np.asarray(array).astype(np.float64).sum())


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))  # noqa: T201
