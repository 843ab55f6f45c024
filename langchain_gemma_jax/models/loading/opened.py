"""A model whose files are open, and the plan that is made with them: all of it but its weights, which come last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.model import Model
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
    files: Unchanged  # what it is read from
    chosen: str = ""  # why it is on N devices
    vocabulary: bytes = b""  # a digest of its tokenizer
    generation_defaults: Mapping[str, object] = field(default_factory=dict)  # what its authors recommend
    chat_format: ChatFormat = field(default_factory=ChatFormat)
    encoders: ModelMedia | None = None  # of pictures and sounds; None: it reads text alone


class Opened(ABC):
    """A model's files. ``with`` closes them."""

    name: str
    files: Unchanged

    @property
    def among_hosts(self) -> bool:
        """Return True if the model may be divided among the devices of several hosts."""
        return False

    @abstractmethod
    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        """Return a function that plans the model in a place. What is small and can be wrong is read and checked now.

        Raises:
            CheckpointError, InputError, UnsupportedModelError: the files, or what is asked of them, cannot be used.
        """

    @abstractmethod
    def planned_again(self, like: Model) -> LoadPlan:
        """Plan the same model once more, in the place where it was.

        Raises:
            CheckpointError: the files have another model now.
        """

    @abstractmethod
    def why_not(self, devices: int) -> str | None:
        """Say why the model cannot be divided among N devices. None: it can."""

    @abstractmethod
    def read(self, plan: LoadPlan, advance: Advance) -> Params:
        """Read the weights to where the plan has them. Nothing stays on a device after an error."""

    @abstractmethod
    def close(self) -> None:
        """Close the files. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
