"""``RowPrograms``: the programs for rows of requests, and what they take in the place of a model's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.executables.programs_at_hand import ProgramsAtHand
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.steps.adapter_slots import AdapterSlots
from langchain_gemma_jax.models.gemma.forward import Params


class RowPrograms:
    """The programs of one model: those without adapters, unless a request among the rows has one."""

    def __init__(self, params: Params, at_hand: ProgramsAtHand, adapters: AdapterSlots | None) -> None:
        """``adapters``: if the model takes any."""
        self._params, self._at_hand, self._adapters = params, at_hand, adapters

    def of(self, *requests: Request) -> ProgramsAtHand:
        """Return the programs for these requests."""
        adapters = self._adapters if _adapted(requests) else None
        return self._at_hand.with_adapters(None if adapters is None else adapters.stacked)

    def key(self, requests: Sequence[Request], *plain: str | int) -> ProgramKey:
        """Return the key of the program for these requests."""
        return self.of(*requests).key(*plain)

    def params(self, requests: Sequence[Request], rows: int) -> Any:
        """Return the parameters for a program whose first rows are these requests'."""
        if self._adapters is None or not _adapted(requests):
            return self._params
        return self._adapters.params(self._params, requests, rows)

    def there(self, request: Request) -> bool | None:
        """Return True if a request's adapter is on the device, False while others use all slots. None: no room."""
        if request.asked.prompt.adapter is None:
            return True
        if self._adapters is None:
            raise TypeError(f"request {request.asked.number} has an adapter, and its model takes none")
        return self._adapters.there(request)

    def release(self, request: Request) -> None:
        """Release the slot of a request that is over, or starts again."""
        if self._adapters is not None:
            self._adapters.release(request)

    def forget(self) -> None:
        """Drop all adapters, as the model leaves."""
        if self._adapters is not None:
            self._adapters.forget()


def _adapted(requests: Sequence[Request]) -> bool:
    return any(each.asked.prompt.adapter is not None for each in requests)
