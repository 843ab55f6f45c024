"""The interface of a model's open files, and the plan of a model: everything but its weights, which are read last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gemma.drafter import GemmaDrafter
from langchain_gemma_jax.models.loading.drafters import LoadedDrafter
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.mapped.array_file import ArrayFile, ArrayPlaces
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.params import Advance, Params
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.model_media import ModelMedia


@dataclass(frozen=True)
class LoadPlan:
    """A model before its weights are read."""

    name: str
    architecture: Architecture
    recipe: Recipe
    tokenizer: Tokenizer
    placement: Placement
    files: Unchanged  # the files that it is read from
    chosen: str = ""  # the reason for its number of devices
    vocabulary: bytes = b""  # a digest of its tokenizer
    generation_defaults: Mapping[str, object] = field(default_factory=dict)  # its authors' recommendations
    chat_format: ChatFormat = field(default_factory=ChatFormat)
    encoders: ModelMedia | None = None  # of pictures and sounds; None: it reads text alone
    drafter: GemmaDrafter | None = None  # which guesses its tokens; None: there is none beside it


class Opened(ABC):
    """A model's open files. ``with`` closes them."""

    name: str
    files: Unchanged

    @property
    def among_hosts(self) -> bool:
        """True if the model may be divided among the devices of several hosts."""
        return False

    @abstractmethod
    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        """Return a function that plans the model for a placement. Small files are read and checked now.

        Raises:
            CheckpointError, InputError, UnsupportedModelError: the files cannot be used, or not with these options.
        """

    @abstractmethod
    def planned_again(self, like: Model) -> LoadPlan:
        """Plan the same model again, in its old placement.

        Raises:
            CheckpointError: the files hold another model now.
        """

    @abstractmethod
    def why_not(self, devices: int) -> str | None:
        """Return why the model cannot be divided among ``devices`` devices. None: it can."""

    def places(self, plan: LoadPlan) -> ArrayPlaces | None:  # noqa: ARG002  most can
        """Return the places of the plan's arrays in a file that is to be mapped. None: they cannot be mapped."""
        return None

    @abstractmethod
    def read(self, plan: LoadPlan, advance: Advance, mapped: ArrayFile | None = None) -> Params:
        """Read the weights to the plan's placement, or to the places in ``mapped``, or take them from there.

        Nothing stays on a device after an error.
        """

    def read_drafter(self, plan: LoadPlan) -> LoadedDrafter | None:  # noqa: ARG002  most have none
        """Read the weights of the plan's drafter to the plan's placement. None: it has none."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the files. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
