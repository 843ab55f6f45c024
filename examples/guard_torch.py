"""The four guards around somebody else's torch module on JAX, each with the mistake that it is for.

pip install "langchain-gemma-jax[torchax]"
python examples/guard_torch.py
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np

from langchain_gemma_jax import guard

TURNS = [[3, 5], [3, 5, 8, 2], [3, 5, 8, 2, 9, 9, 1], [3, 5, 8, 2, 9, 9, 1, 7, 7]]  # a conversation that grows
LENGTH = 16


def make_module() -> Any:
    """Make a small language model, as a user of torch writes one."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Embedding(2000, 256), torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 2000)
    )


def padded(turn: list[int]) -> np.ndarray:
    """A turn as an array of one length."""
    out = np.zeros((1, LENGTH), np.int32)
    out[0, : len(turn)] = turn
    return out


def caught(mode: str, run: Callable[[], object], **limits: Any) -> None:
    """Run with one guard that tells, and show the first that it says."""
    said: list[str] = []
    modes: dict[str, Any] = dict.fromkeys(("recompile", "transfer", "residency", "cold_start"), "off")
    modes[mode] = "callback"
    with guard(**modes, **limits, on_trip=lambda trip: said.append(str(trip))):
        run()
    print(f"{said[0] if said else mode + ': nothing'}\n")


def main() -> None:
    """Make each mistake once, and then the same work without any."""
    missing = [name for name in ("torch", "transformers", "torchax") if find_spec(name) is None]
    if missing:
        print(f'not installed: {", ".join(missing)}. pip install "langchain-gemma-jax[torchax]"')
        return
    from langchain_gemma_jax.models.torchax.doors.module_function import as_function

    params, run = as_function(make_module())
    step = jax.jit(run)

    def each_length() -> None:
        for turn in TURNS:
            step(params, jax.device_put(np.array([turn], np.int32)))

    def from_the_host() -> None:
        for turn in TURNS:
            step(params, padded(turn))

    def placed_again() -> None:
        stored = {name: np.asarray(array) for name, array in params.items()}
        for turn in TURNS:
            step(jax.device_put(stored), jax.device_put(padded(turn)))

    def cold() -> None:
        jax.clear_caches()  # as a new process has none
        step(params, jax.device_put(padded(TURNS[0])))

    caught("recompile", each_length)
    caught("transfer", from_the_host)
    caught("residency", placed_again)
    caught("cold_start", cold, deadline=0.01)
    with guard(recompile="raise", transfer="raise", residency="raise", app="careful") as careful:
        for turn in jax.device_put([padded(turn) for turn in TURNS]):
            step(params, turn)
    print(careful.report())


if __name__ == "__main__":
    main()
