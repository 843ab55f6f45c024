"""The engine's only access to the device: every copy and every program goes through here.

So every byte is counted, nothing is copied by accident (JAX's transfer guard is on around each call), and a program
that is not on the ladders is detected at its first use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.guards import Asker, Asks, CompileCost, Guards
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.other_hosts import OtherHostsPrograms
from langchain_gemma_jax.engine.device.page_pool import KvPool, shardings
from langchain_gemma_jax.models.seams.placement import Placement

Result = TypeVar("Result")
P = ParamSpec("P")
KEPT = 24  # small arrays, or sets of them, that are kept on the device for the next step


class DeviceAccess:
    """The device, or the devices, of one model."""

    def __init__(
        self,
        placement: Placement,
        metrics: Metrics,
        guards: Guards,
        programs: Iterable[ProgramKey],
        excess: Callable[[], int],
        others: OtherHostsPrograms | None = None,
    ) -> None:
        """``excess`` returns the bytes over the budget; ``others``: the other hosts that the model is divided among."""
        self.placement = placement
        self.bound = frozenset(programs)  # all programs that may be run
        self.seen: set[ProgramKey] = set()  # those that were needed so far
        self.warmed = False  # the model was warmed up
        self.answered = False  # a request was answered, so that the model's first programs are there
        self.asked_by: tuple[Asker, ...] = ()  # the requests that the owner thread is working for
        self.guards, self.excess = guards, excess
        self._metrics, self._others = metrics, others
        self._kept: dict[Hashable, Any] = {}  # the latest last
        self._ahead: jax.Array | None = None  # see ``one_ahead``

    def put(self, tree: Any, *, for_step: bool = False) -> Any:
        """Copy numpy arrays to the device or, if there are several, to each."""
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
        self._metrics.bytes_to_device += size
        self._metrics.device_copies += 1
        if for_step:
            self._metrics.step_bytes_to_device += size
        found = self.placement.put(tree)
        if self._others is not None:
            self._others.copied(jax.tree.leaves(tree), jax.tree.leaves(found))
        return found

    def put_once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Copy the small arrays that ``make`` returns to the device, unless they were for this key, and lately."""
        if (found := self._kept.pop(key, None)) is None:
            found = self.put(make(), for_step=True)
        self._kept[key] = found
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def forget_kept(self) -> None:
        """Drop what ``put_once`` keeps."""
        self._kept.clear()

    def put_pages(self, contents: KvPool) -> KvPool:
        """Copy pages of numpy arrays to the device, with the sharding that programs expect."""
        self._metrics.bytes_to_device += sum(leaf.nbytes for leaf in jax.tree.leaves(contents))
        self._metrics.device_copies += 1
        found: KvPool = jax.device_put(contents, shardings(self.placement, contents))
        return found

    def allow(self, programs: Iterable[ProgramKey]) -> None:
        """Let these programs be run too: the model was given its first adapter."""
        self.bound |= frozenset(programs)

    def expect(self, key: ProgramKey) -> None:
        """Note that a program will be needed.

        Raises:
            GuardError: it is not on the ladders, or was not warmed up, and the guard's policy is "raise".
        """
        if key not in self.bound:
            self.guards.trip(
                "recompile",
                f"the program {key} is not on the ladders",
                self._asker,
                advice="This is a mistake in the engine: please report it.",
            )
        elif self.warmed and key not in self.seen:
            self.guards.trip(
                "recompile",
                f"the program {key} is first asked for after the model was warmed up",
                self._asker,
                advice="Warm up for longer conversations: engine().warmup(model, max_context=...).",
            )
        self.seen.add(key)

    def waited(self, key: ProgramKey, seconds: float, verb: str) -> None:
        """Note that work stood still until a program was there. It has not run yet, so nothing is lost by an error.

        Raises:
            GuardError: that was long, the model had answered before, and the guard's policy is "raise".
        """
        if self.answered and seconds > (limit := self.guards.compile_wait):
            self.guards.trip(
                "recompile",
                f"a request waited {seconds:.1f} s, more than {limit:g}, for {verb} the program {key}",
                self._asker,
                advice="Warm up before the first request: engine().warmup(model).",
            )

    def begins(self, request: Asks, missing: Sequence[ProgramKey], cold_cost: Callable[[], CompileCost]) -> None:
        """Let the guards check a request before any work for it. ``missing``: its programs that have never run."""
        request.progress.cold |= bool(missing)
        self.guards.begins(request, self.excess, cold_cost)

    def run(self, key: ProgramKey, program: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Dispatch a program to the device. The returned arrays may not be computed yet."""
        if key not in self.seen:
            self.expect(key)
        if self._others is not None:
            program = self._others.mirrored(key, program)
        began = time.perf_counter()
        try:
            with jax.transfer_guard("disallow"):
                return program(*args, **kwargs)
        except jax.errors.JaxRuntimeError as error:
            if "Disallowed" not in str(error):
                raise
            self._trip_transfer(key, (args, kwargs))
            with jax.transfer_guard("allow"):  # nothing has run, and nothing was donated
                return program(*args, **kwargs)
        finally:
            self._metrics.dispatch_s += time.perf_counter() - began
            self._metrics.dispatches += 1

    @property
    def _asker(self) -> Asker | None:
        """The request whose policies apply, if there is only one. Several get the configured policies."""
        return self.asked_by[0] if len(self.asked_by) == 1 else None

    def _trip_transfer(self, key: ProgramKey, given: Any) -> None:
        """Trip the transfer guard: a program got arrays or numbers in host memory."""
        size = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(given) if not isinstance(leaf, jax.Array))
        self.guards.trip(
            "transfer",
            f"the program {key} was handed {show_bytes(size)} of host memory",
            self._asker,
            nbytes=size,
            advice="This is a mistake in the engine: please report it.",
        )

    def one_ahead(self, made: jax.Array | None) -> None:
        """Wait until what was given here before is computed. None: nothing is under way any more.

        Else many dispatches would wait on the device, and none could be taken back. An error is raised where the
        dispatch's results are fetched.
        """
        before, self._ahead = self._ahead, made
        if before is None or made is None:
            return
        began = time.perf_counter()
        with suppress(jax.errors.JaxRuntimeError):
            jax.block_until_ready(before)
        self._metrics.device_s += time.perf_counter() - began

    def fetch(self, tree: Any) -> Any:
        """Wait for arrays and copy them to the host."""
        began = time.perf_counter()
        try:
            found = jax.tree.map(np.asarray, tree)
        except jax.errors.JaxRuntimeError as error:
            if self._others is None:
                raise
            raise self._others.failed(error) from error
        finally:
            self._metrics.device_s += time.perf_counter() - began
        self._metrics.bytes_to_host += sum(leaf.nbytes for leaf in jax.tree.leaves(found))
        return found


def out_of_memory(error: BaseException) -> bool:
    """Return True if this error means that the device's memory is full."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
