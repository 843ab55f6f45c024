"""The one place where the engine touches the device: every copy and every program goes through here.

So every byte is counted, nothing is copied by accident (JAX's transfer guard is up around each call),
and a program that the ladders do not account for is noticed when it is first asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from langchain_gemma_jax.engine.base.guards import Guard
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.models.placement import Placement

Result = TypeVar("Result")
P = ParamSpec("P")


class DeviceAccess:
    """The device, or the devices, of one model as its conversations use them."""

    def __init__(
        self, placement: Placement, metrics: Metrics, recompile: Guard, programs: Iterable[ProgramKey]
    ) -> None:
        self.placement = placement
        self.bound = frozenset(programs)  # all that may be asked for
        self.seen: set[ProgramKey] = set()  # those that were
        self._metrics = metrics
        self._recompile = recompile

    def put(self, tree: Any, *, for_step: bool = False) -> Any:
        """Copy numpy arrays to the device; of several, to each."""
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
        self._metrics.bytes_to_device += size
        if for_step:
            self._metrics.step_bytes_to_device += size
        return self.placement.put(tree)

    def expect(self, key: ProgramKey) -> None:
        """A program will be asked for.

        Raises:
            GuardError: it is not on the ladders, and the guard is there to raise.
        """
        if key not in self.bound:
            self._recompile.trip(f"the program {key} is not on the ladders")
        self.seen.add(key)

    def run(self, key: ProgramKey, program: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Hand a program to the device. What it returns may not be computed yet."""
        if key not in self.seen:
            self.expect(key)
        began = time.perf_counter()
        try:
            with jax.transfer_guard("disallow"):
                return program(*args, **kwargs)
        finally:
            self._metrics.dispatch_s += time.perf_counter() - began
            self._metrics.dispatches += 1

    def fetch(self, tree: Any) -> Any:
        """Wait for arrays, and copy them to the host."""
        began = time.perf_counter()
        try:
            found = jax.tree.map(np.asarray, tree)
        finally:
            self._metrics.device_s += time.perf_counter() - began
        self._metrics.bytes_to_host += sum(leaf.nbytes for leaf in jax.tree.leaves(found))
        return found


def out_of_memory(error: BaseException) -> bool:
    """Whether this is the device's way to say that its memory is full."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
