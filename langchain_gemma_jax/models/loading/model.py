"""A loaded model: its architecture, its arrays, its tokenizer, and the facts that its files give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

import jax

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.params import Params, leaves
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice
from langchain_gemma_jax.models.seams.weights import total_bytes

if TYPE_CHECKING:
    from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
    from langchain_gemma_jax.models.loading.drafters import LoadedDrafter
    from langchain_gemma_jax.models.seams.media_support import MediaSupport
    from langchain_gemma_jax.models.seams.recipe import Recipe
    from langchain_gemma_jax.models.tokenizer import Tokenizer
    from langchain_gemma_jax.models.vision.model_media import ModelMedia


@dataclass(frozen=True)
class ReadFrom:
    """The files that a model was read from, as they were at that time."""

    files: Unchanged
    tokenizer: bytes  # a digest of it


@dataclass(frozen=True, eq=False)
class Model:
    """A model with its weights on a device.

    ``close()`` frees the device memory; ``with load(...) as model:`` does so at the end of the block.
    Two models are equal only if they are the same object.
    """

    architecture: Architecture
    params: Params = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    recipe: Recipe  # its matrices' memory layout and products
    name: str  # the Hub id, or the folder's name
    generation_defaults: Mapping[str, object] = field(default_factory=dict, repr=False)  # its generation_config.json
    chat_format: ChatFormat = field(default_factory=ChatFormat, repr=False)  # as far as its files give it
    placed: Placement | None = field(default=None, repr=False)  # of its arrays; None: whole, on one device
    read_from: ReadFrom | None = field(default=None, repr=False)  # None: its weights were already in memory
    encoders: ModelMedia | None = field(default=None, repr=False)  # of pictures and sounds; None: it reads text alone
    drafter: LoadedDrafter | None = field(default=None, repr=False)  # which guesses its tokens; None: there is none
    not_mapped: str = field(default="they were in memory", repr=False)  # the reason. Empty: a mapped file has them

    @property
    def config(self) -> ModelConfig:
        """The configuration of a Gemma.

        Raises:
            UnsupportedModelError: it is no Gemma.
        """
        if (config := self.architecture.gemma) is None:
            found = type(self.architecture).__name__
            raise UnsupportedModelError(f"{self.name!r}: expected a Gemma, found the architecture {found}.")
        return config

    @property
    def media(self) -> MediaSupport | None:
        """The pictures and sounds that it can take. None: it reads text alone."""
        return None if self.encoders is None else self.encoders.support

    @property
    def nbytes(self) -> int:
        """Bytes of the weights on the device. Also valid after ``close``."""
        return total_bytes(self.params)

    @property
    def closed(self) -> bool:
        """True if the weights were freed."""
        return any(array.is_deleted() for array in leaves(self.params))

    @property
    def device(self) -> jax.Device:
        """The device of its weights, also after ``close``; of several the first one."""
        if self.placed is not None:
            return self.placed.devices[0]
        return next(iter(next(leaves(self.params)).sharding.device_set))

    @property
    def placement(self) -> Placement:
        """The placement of its weights, also after ``close``."""
        return self.placed or SingleDevice(self.device)

    def close(self) -> None:
        """Free every array now, even if other objects still refer to it. May be called twice."""
        for array in leaves(self.params):
            if not array.is_deleted():
                array.delete()
        if self.encoders is not None:
            self.encoders.close()
        if self.drafter is not None:
            self.drafter.close()

    def reopen(self, twin: Model) -> None:
        """Take over the arrays of the same model, loaded again after ``close``. References to this one stay valid."""
        self.params.update(twin.params)  # the names are the same, so a loop over the dict continues too
        if self.drafter is not None and twin.drafter is not None:
            self.drafter.reopen(twin.drafter)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
