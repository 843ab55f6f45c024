"""Dispatches that were handed to the device, and the tokens that they bring home."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.sampling import Picked
from langchain_gemma_jax.engine.requests.request import Request


@dataclass(eq=False)
class InFlight:
    """A dispatch whose tokens the host has not seen."""

    requests: tuple[Request, ...]
    picked: Picked  # [row] of a step or chunk, [token] of a verification, [step, row] of a loop
    epochs: tuple[int, ...]  # of each request, when it was handed over
    draft: tuple[int, ...] = ()  # of a verification
    got: jax.Array | None = None  # of a loop: how many tokens each row got
    ends: jax.Array | None = None  # of a step: where the next one goes on

    @property
    def rows(self) -> int:
        """The number of rows of a step, those without a request included."""
        return 0 if self.ends is None else int(self.ends.shape[0])

    @property
    def tokens_a_row(self) -> int:
        """The number of tokens that each pass reads of a request; 0 of a chunk, which is no pass of a few tokens."""
        return 1 + len(self.draft) if self.draft or self.ends is not None or self.got is not None else 0


@dataclass(frozen=True)
class NewTokens:
    """Tokens for one request. The KV holds those before the last one already."""

    request: Request
    tokens: tuple[int, ...]
    logprobs: tuple[tuple[float, tuple[int, ...], tuple[float, ...]], ...] = ()
    rows: int = 0  # of the pass that gave them, one for each token that was read; 0: a chunk of the prompt
    drafted: int = 0
    accepted: int = 0


def epochs_of(requests: tuple[Request, ...]) -> tuple[int, ...]:
    """Return the epoch of each request: results of a dispatch from an earlier epoch are of no use."""
    return tuple(request.progress.epoch for request in requests)


def collect(flight: InFlight, device: DeviceAccess) -> list[NewTokens]:
    """Wait for a dispatch, and say what each request got of it."""
    wanted = any(request.asked.sampling.measured for request in flight.requests)
    picked: Picked = device.fetch(flight.picked if wanted else flight.picked.tokens)
    tokens = np.asarray(picked.tokens if wanted else picked)
    got = None if flight.got is None else device.fetch(flight.got)
    new = []
    for row, (request, epoch) in enumerate(zip(flight.requests, flight.epochs, strict=True)):
        if epoch != request.progress.epoch:
            continue  # it went another way
        if got is not None:
            places: list[tuple[int, ...]] = [(step, row) for step in range(int(got[row]))]
        elif flight.draft:
            good = _agreeing(flight.draft, tokens)
            places = [(index,) for index in range(good + 1)]
        else:
            places = [(row,)]
        request.progress.issued = 0 if flight.draft or got is not None else request.progress.issued - 1
        found = tuple(int(tokens[place]) for place in places)
        details = tuple(_details(picked, place) for place in places) if request.asked.sampling.measured else ()
        accepted = len(found) - 1 if flight.draft else 0
        new.append(NewTokens(request, found, details, flight.tokens_a_row, len(flight.draft), accepted))
    return new


def _agreeing(draft: tuple[int, ...], tokens: np.ndarray) -> int:
    """Return the number of drafted tokens, from the first one on, that would have been picked anyway."""
    for index, drafted in enumerate(draft):
        if drafted != tokens[index]:
            return index
    return len(draft)


def _details(picked: Picked, place: tuple[int, ...]) -> tuple[float, tuple[int, ...], tuple[float, ...]]:
    ids, values = np.asarray(picked.top_ids)[place], np.asarray(picked.top_logprobs)[place]
    return float(np.asarray(picked.logprobs)[place]), tuple(ids.tolist()), tuple(values.tolist())
