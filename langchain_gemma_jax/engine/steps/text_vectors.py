"""Vectors of texts, in batches. The caller's thread passes each batch to the owner thread.

Programs are made in the caller's thread, so that only this caller waits for them. The owner thread only dispatches,
between two steps of other requests, and the caller's thread also waits for the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.ladders import TextLadder
from langchain_gemma_jax.engine.device.device_access import out_of_memory
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import CancelledRequestError, DeviceFailedError, DeviceMemoryError
from langchain_gemma_jax.stopping import Stop, StoppedError

_AHEAD = 2  # batches on the device at once: one runs, the next one is ready


class OnOwner(Protocol):
    """A function that runs another one on the owner thread and waits for its result."""

    def __call__(self, function: Callable[[], jax.Array], timeout: float | None = None, /) -> jax.Array: ...


def text_vectors_of(
    runner: Runner,
    ladder: TextLadder,
    texts: Sequence[Sequence[int]],
    call: OnOwner,
    clock: Clock,
    stop: Stop | None = None,
) -> npt.NDArray[np.float32]:
    """Return the vector of each text, ``[text, width]``.

    Raises:
        DeadlineError: the time was up. CancelledRequestError: the caller was cancelled.
        DeviceMemoryError, DeviceFailedError: the device failed.
    """
    found: list[npt.NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(texts)
    under_way: list[tuple[tuple[int, ...], jax.Array]] = []

    def bring_home(keep: int) -> None:
        while len(under_way) > keep:
            numbers, vectors = under_way.pop(0)
            home = np.asarray(vectors)
            for row, number in enumerate(numbers):
                found[number] = home[row]

    try:
        for batch in ladder.batches([len(text) for text in texts]):
            _go_on(clock, stop)
            if not runner.library.there(batch.key):
                runner.library.make(batch.key)
            _go_on(clock, stop)
            under_way.append((batch.texts, call(lambda batch=batch: runner.embed(batch, texts))))  # type: ignore[misc]
            bring_home(keep=_AHEAD - 1)
        bring_home(keep=0)
    except jax.errors.JaxRuntimeError as error:
        if out_of_memory(error):
            raise DeviceMemoryError(
                "The device's memory was full while vectors of texts were made. Others may use the device too: leave "
                "them room with configure(memory_budget=...).",
            ) from error
        raise DeviceFailedError(f"The device failed while vectors of texts were made: {error}") from error
    result = np.stack(found)
    if not np.isfinite(result).all():
        raise DeviceFailedError(
            "The model made a vector that has numbers which are not finite. Its activations can pass what float16 "
            'holds: load it with dtype="float32" or "bfloat16". If it is, its weights are damaged.'
        )
    return result


def _go_on(clock: Clock, stop: Stop | None) -> None:
    if clock.left == 0.0:
        raise clock.error()
    if stop is not None:
        try:
            stop.check()
        except StoppedError:
            raise CancelledRequestError("The call for these vectors was cancelled.") from None
