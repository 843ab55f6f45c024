"""Protocols for other processes with devices that the engine uses: they repeat its dispatches, copies and loads.

A program on the devices of several processes must be dispatched by each of them, in the same order. The engine of one
process, the leader, decides the order, and sends it to the others by these protocols, which ``scale.hosts`` implements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.seams.placement import Placement


class OtherHostsPrograms(Protocol):
    """The programs of one shape and placement on other hosts. For the owner thread."""

    def copied(self, arrays: Sequence[npt.NDArray[np.generic]], there: Sequence[jax.Array]) -> None:
        """Make the others copy these arrays to their devices, as was done here."""
        ...

    def mirrored(self, key: ProgramKey, program: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a program: the others are made to dispatch it before it is dispatched here."""
        ...

    def failed(self, error: Exception) -> HostLostError:
        """Return the error for a failure in work that the hosts do together, which ends the group."""
        ...


class LoadElsewhere(Protocol):
    """A model that other hosts load while this one does."""

    def finish(self, model: Model) -> None:
        """Wait until all of them have loaded it.

        Raises:
            GemmaJaxError: one of them cannot load it, or is lost.
        """
        ...

    def give_up(self) -> None:
        """Make them drop it, because the load failed here."""
        ...


class OtherHosts(Protocol):
    """The other processes of a group, for the engine of the leader."""

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        """All devices of the group, those of this process first."""
        ...

    def programs(self, shape: Shape, where: Placement) -> OtherHostsPrograms:
        """Return the programs of a shape and placement on the other hosts."""
        ...

    def making(self, shape: Shape, where: Placement) -> Callable[[ProgramKey], None]:
        """Return a function to call with each program that is being made here, so that the others make it too."""
        ...

    def load(self, plan: LoadPlan, shape: Shape, source: str, how: dict[str, Any]) -> LoadElsewhere:
        """Make the others load a model that is being loaded here."""
        ...

    def load_again(self, plan: LoadPlan, shape: Shape, model: Model) -> LoadElsewhere:
        """Make the others load a model again that all had loaded before."""
        ...
