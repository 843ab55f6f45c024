"""Sampling parameters of rows on the device, copied there once for each request, except its grammar's masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.knobs import (
    OF_NONE,
    OF_THE_BEST,
    OF_THE_BIASED,
    OF_THE_TOKEN,
    Knobs,
    knobs,
    packed,
)
from langchain_gemma_jax.engine.device.programs import RowSettings
from langchain_gemma_jax.engine.requests.request import Request


class KnobsOnDevice:
    """The sampling parameters of one model's requests, in the form of its programs' arguments."""

    def __init__(self, device: DeviceAccess, vocab_size: int) -> None:
        self._device = device
        self._all_allowed: jax.Array = device.put(np.full(-(-vocab_size // 32), 0xFFFFFFFF, np.uint32))
        self._unused = packed(knobs(seed=0, prompt_length=0, temperature=0.0))

    def of_rows(self, requests: Sequence[Request], rows: int) -> RowSettings:
        """Return the parameters of rows: the requests' first, then those of unused rows."""

        def make() -> npt.NDArray[np.uint32]:
            numbers = [_numbers(request) for request in requests]
            return np.stack([*numbers, *[self._unused] * (rows - len(numbers))])

        key = ("settings", rows, *((request.asked.number, request.masked) for request in requests))
        settings = self._device.put_once(key, make)
        allowed: dict[Request, jax.Array] = {}
        for request in requests:
            if request not in allowed:
                allowed[request] = self._allowed(request)
        legal = [allowed[request] for request in requests]
        return RowSettings(settings, (*legal, *[self._all_allowed] * (rows - len(legal))))

    def number(self, number: int) -> jax.Array:
        """Return a number on the device."""
        found: jax.Array = self._device.put_once(("number", number), lambda: np.array(number, np.int32))
        return found

    def alive(self, rows: int, used: int) -> jax.Array:
        """Return ones for the rows that are used, and zeros for the others, on the device."""
        found: jax.Array = self._device.put_once(
            ("alive", rows, used), lambda: (np.arange(rows) < used).astype(np.int32)
        )
        return found

    def _allowed(self, request: Request) -> jax.Array:
        rule = request.constraint
        if rule is None or rule.allowed is None:
            return self._all_allowed
        found: jax.Array = self._device.put(rule.allowed, for_step=True)
        return found


def _numbers(request: Request) -> npt.NDArray[np.uint32]:
    """Return a request's parameters as they are packed, which is done once for each."""
    on_device = request.on_device
    if on_device.knobs is None:
        on_device.knobs = packed(_plain_knobs(request))
        on_device.masked_knobs = packed(_plain_knobs(request, masked=True))
    return cast("npt.NDArray[np.uint32]", on_device.masked_knobs if request.masked else on_device.knobs)


def _plain_knobs(request: Request, *, masked: bool = False) -> Knobs:
    s = request.asked.sampling
    return knobs(
        seed=request.asked.seed,
        prompt_length=len(request.asked.prompt),
        temperature=s.temperature,
        top_k=s.top_k,
        top_p=s.top_p,
        min_p=s.min_p,
        repetition=s.repetition_penalty,
        presence=s.presence_penalty,
        frequency=s.frequency_penalty,
        # The order matters: the first ones are the scored ids.
        logit_bias=dict.fromkeys(s.scored, 0.0) | dict(s.logit_bias) | dict.fromkeys(request.asked.banned, -100.0),
        logprobs=_wanted(s),
        masked=masked,
    )


def _wanted(sampling: Sampling) -> int:
    """Return the kind of log-probabilities to report."""
    if sampling.scored:
        return OF_THE_BIASED
    return OF_THE_BEST if sampling.logprobs else OF_THE_TOKEN if sampling.confidence else OF_NONE
