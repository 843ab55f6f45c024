"""``Chains``: the guesses of a drafter beside a model, from the state in which the model left each request."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.conversations.kv_store import KvStore
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.executables.programs_at_hand import ProgramsAtHand
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.models.gemma.forward import Params


@dataclass(frozen=True)
class States:
    """The model's outputs for the tokens of a request that it read last."""

    hidden: jax.Array  # [token, width] float32, some of them unused
    start: int  # position of the first token
    count: int  # tokens that are real. The last ones of a check may have been rejected


class Chains:
    """A drafter on its target's device. For the owner thread."""

    def __init__(
        self,
        params: Params,
        drafter: Params,
        ladders: Ladders,
        device: DeviceAccess,
        kv_store: KvStore,
        at_hand: ProgramsAtHand,
    ) -> None:
        """``params`` are the target's weights, ``drafter`` the drafter's own."""
        self._params, self._drafter, self._ladders = params, drafter, ladders
        self._device, self._kv_store, self._at_hand = device, kv_store, at_hand
        self._ran: set[int] = set()  # numbers of guesses that were made

    def of(self, request: Request) -> ChainOfRequest:
        """Return the drafter for one request, as it is now."""
        return ChainOfRequest(self, request)

    def counts(self, request: Request) -> tuple[int, ...]:
        """Return the numbers of guesses that can be made, and checked, without waiting for a program."""
        capacity = self._capacity(request)
        return self._at_hand.guesses(capacity, self._ran) if self._at_hand.verifies(capacity) else ()

    def guess(self, request: Request, states: States, count: int) -> tuple[int, ...]:
        """Return the next tokens of a request as the drafter guesses them. Waits for them."""
        resident, held = request.on_device.resident, request.held
        if resident is None:
            raise TypeError(f"request {request.asked.number} runs without memory")
        self._ran.add(count)
        kept, key = self._kv_store.held, ("draft", count, self._capacity(request))
        numbers = (np.array([request.progress.context[-1]], np.int32), np.array([held], np.int32))
        token, held_there, last = self._device.put(
            (*numbers, np.array(held - 1 - states.start, np.int32)), for_step=True
        )
        tables = kept.arrays.tables([resident], 1, key[2])
        given = (token, held_there, states.hidden, last, tables, kept.arrays.pool)
        found = self._device.run(key, kept.library.of(key, self._device.waited), self._params, self._drafter, *given)
        return tuple(self._device.fetch(found).tolist())

    def _capacity(self, request: Request) -> int:
        """Return how many tokens the tables reach, as for the check of the guesses."""
        return self._ladders.capacity(min(request.held + 1 + self._ladders.draft, self._ladders.capacities[-1]))


@dataclass(frozen=True)
class ChainOfRequest:
    """A drafter for one request: the ``Chain`` of ``drafting``."""

    chains: Chains
    request: Request

    @property
    def counts(self) -> tuple[int, ...]:
        return self.chains.counts(self.request)

    @property
    def states(self) -> States | None:
        """The outputs among which is that of the last token that was read. None: the model did not keep it."""
        request = self.request
        found, last = request.on_device.states, request.held - 1
        waits = request.to_read != 1 or request.progress.issued or request.on_device.resident is None
        if waits or not isinstance(found, States) or not found.start <= last < found.start + found.count:
            return None
        return found

    @property
    def ready(self) -> bool:
        return self.states is not None

    def guess(self, count: int) -> tuple[int, ...]:
        states = self.states
        if states is None:
            raise TypeError(f"request {self.request.asked.number} has no state to draft from")
        return self.chains.guess(self.request, states, count)
