"""Other processes that have devices too, as the engine sees them: whatever it does on all of these, they do likewise.

A program that runs on devices of several processes has to be handed over by each of them, in one order. The engine of
one process, the leader, decides; these protocols are how it tells the others. ``scale.hosts`` is what carries it there.
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


class BesideHosts(Protocol):
    """What the programs of one shape in one place do on other hosts. For the owner thread."""

    def copied(self, arrays: Sequence[npt.NDArray[np.generic]], there: Sequence[jax.Array]) -> None:
        """Have the others copy these arrays to their devices, as was done here."""
        ...

    def beside(self, key: ProgramKey, program: Callable[..., Any]) -> Callable[..., Any]:
        """Return the program, which tells the others to hand it to their devices before it is handed to these."""
        ...

    def failed(self, error: Exception) -> HostLostError:
        """Return the error of who waited for what the hosts do together, which failed: they go on no more."""
        ...


class LoadElsewhere(Protocol):
    """A model that other hosts load while this one does."""

    def finish(self, model: Model) -> None:
        """Wait until all of them have it.

        Raises:
            GemmaJaxError: one of them cannot have it, or is lost.
        """
        ...

    def give_up(self) -> None:
        """Have them let go of it: nothing comes of it here."""
        ...


class OtherHosts(Protocol):
    """The other processes of a group, to the engine of the one that leads it."""

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        """All devices of the group: those of this process come first."""
        ...

    def programs(self, shape: Shape, where: Placement) -> BesideHosts:
        """Return what runs the programs of a shape in a place there."""
        ...

    def making(self, shape: Shape, where: Placement) -> Callable[[ProgramKey], None]:
        """Return what is told of each program that is made here, so that the others make it meanwhile."""
        ...

    def load(self, plan: LoadPlan, shape: Shape, source: str, how: dict[str, Any]) -> LoadElsewhere:
        """Have the others load what is loaded here."""
        ...

    def load_again(self, plan: LoadPlan, shape: Shape, model: Model) -> LoadElsewhere:
        """Have the others load a model again that all had loaded before."""
        ...
