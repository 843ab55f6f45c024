"""Sampling parameters of rows on the device, copied there once for each request, except its grammar's masks."""

from __future__ import annotations

from typing import cast

import jax
import numpy as np

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.knobs import OF_NONE, OF_THE_BEST, OF_THE_BIASED, OF_THE_TOKEN, Knobs, knobs
from langchain_gemma_jax.engine.device.programs import RowKnobs
from langchain_gemma_jax.engine.requests.request import Request


class KnobsOnDevice:
    """The sampling parameters of one model's requests, in the form of its programs' arguments."""

    def __init__(self, device: DeviceAccess, vocab_size: int) -> None:
        self._device = device
        self.all_allowed: jax.Array = device.put(np.full(-(-vocab_size // 32), 0xFFFFFFFF, np.uint32))
        self.idle_row = RowKnobs(device.put(knobs(seed=0, prompt_length=0, temperature=0.0)), self.all_allowed)

    def of(self, request: Request) -> RowKnobs:
        """Return the parameters for a request's next token."""
        if request.on_device.knobs is None:
            request.on_device.knobs = RowKnobs(self._device.put(_plain_knobs(request)), self.all_allowed)
        free = cast("RowKnobs", request.on_device.knobs)
        rule = request.constraint
        if rule is None or rule.allowed is None:
            return free
        if request.on_device.masked_knobs is None:
            request.on_device.masked_knobs = self._device.put(_plain_knobs(request, masked=True))
        return RowKnobs(cast("Knobs", request.on_device.masked_knobs), self._device.put(rule.allowed, for_step=True))

    def of_rows(self, requests: tuple[Request, ...], rows: int) -> tuple[RowKnobs, ...]:
        """Return the parameters of a step's rows: the requests' first, then those of unused rows."""
        return tuple(self.of(request) for request in requests) + (self.idle_row,) * (rows - len(requests))


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
