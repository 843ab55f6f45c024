"""Drafters beside a model: found, checked against it, and read to where it is.

A caller names one by ``drafter=``: a folder, or an id on the Hub. By default a model takes the one in the
folder ``assistant`` in its own, or in the one beside it that has its name with ``-assistant`` behind it. Only what is
named is ever downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    GemmaJaxError,
    TensorMismatchError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.folder import CONFIG
from langchain_gemma_jax.models.checkpoint.hf_names import TOKEN_ORDER, hf_naming
from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.drafter_config import drafter_from_hf, for_target, is_drafter
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.gemma.drafter import ORDER, GemmaDrafter
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms
from langchain_gemma_jax.models.packed.quantize import quantized
from langchain_gemma_jax.models.seams.params import Params
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import total_bytes

OFF = "off"
"""The value of ``drafter`` that asks for none."""
ASSISTANT = "assistant"
_WHOLE: Mapping[str, type[np.signedinteger[Any]]] = {"I64": np.int64, "I32": np.int32}


@dataclass(frozen=True)
class AskedDrafter:
    """The folder of a drafter, and whether a caller named it."""

    folder: Path
    named: bool


@dataclass(frozen=True, eq=False)
class LoadedDrafter:
    """A drafter with its weights on its target's device."""

    drafter: GemmaDrafter
    folder: Path
    params: Params = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of its weights. Also valid after ``close``."""
        return total_bytes(self.params)

    def close(self) -> None:
        """Free its weights. May be called twice."""
        for array in jax.tree.leaves(self.params):
            if not array.is_deleted():
                array.delete()

    def reopen(self, twin: LoadedDrafter) -> None:
        """Take over the arrays of the same drafter, read again after ``close``."""
        self.params.update(twin.params)


class DrafterFiles:
    """A drafter's open files, checked against the model that it is for."""

    def __init__(self, folder: Path, target: ModelConfig, target_name: str) -> None:
        """Open and check them. Headers are read, but no weights.

        Raises:
            CheckpointError, UnsupportedModelError: the files cannot be used. ConfigError: it is for another model.
        """
        shown = folder / CONFIG
        if folder.is_file():
            raise UnsupportedModelError(
                f"{folder}: expected the folder of a drafter, with {CONFIG} and model.safetensors, found a file. "
                "Drafters are not read from GGUF files: take the one that was published with the model."
            )
        if not shown.is_file():
            raise CheckpointNotFoundError(folder, f"a drafter: {CONFIG} and model.safetensors", f"no {CONFIG}")
        config = drafter_from_hf(read_object(real_file(folder, CONFIG), shown), str(shown))
        self.folder, self._config = folder, for_target(config, str(shown), target, target_name)
        self._files = Unchanged.now(folder)
        self._tensors = open_safetensors(folder)
        try:
            self._naming = hf_naming(self._config, self._tensors.names(), self._tensors.location)
            self._check_order()
        except BaseException:
            self.close()
            raise

    def drafter(self, target: Recipe) -> GemmaDrafter:
        """Return the drafter, with its matrices stored as its target's are.

        Where the target's stay as in its file, those of the drafter have eight bits: most such files have fewer, and a
        drafter is small.
        """
        storage = target.storage
        if storage.as_in_file:
            storage = quantized("int8", storage.block_forms or choose_block_forms())
        return GemmaDrafter(self._config, replace(target, storage=storage))

    def read(self, drafter: GemmaDrafter, where: Placement) -> LoadedDrafter:
        """Read the weights.

        Raises:
            CheckpointError: they cannot be used, or changed while they were read. Nothing stays on the device.
        """
        recipe = drafter.recipe
        order = self._order(drafter) if drafter.drafting.centroids else None
        params = place(
            self._tensors, self._naming, self._config, recipe.dtype, recipe.layout, where, storage=recipe.storage
        )
        found = LoadedDrafter(drafter, self.folder, params)
        try:
            if order is not None:
                params[ORDER] = where.put(order)
            self._files.check()
        except BaseException:
            found.close()
            raise
        return found

    def close(self) -> None:
        """Close the files. May be called twice."""
        self._tensors.close()

    def _check_order(self) -> None:
        drafting, tensors = self._config.drafting, self._tensors
        if drafting is None or not drafting.centroids:
            return
        wanted = (self._config.vocab_size,)
        there = TOKEN_ORDER in tensors.names()
        if not there or tensors.shape(TOKEN_ORDER) != wanted or tensors.dtype(TOKEN_ORDER) not in _WHOLE:
            found = f"{tensors.dtype(TOKEN_ORDER)} of {list(tensors.shape(TOKEN_ORDER))}" if there else "none"
            raise TensorMismatchError(tensors.location, f"a tensor {TOKEN_ORDER} of {wanted[0]} whole numbers", found)

    def _order(self, drafter: GemmaDrafter) -> np.ndarray:
        """Return the tokens of each group, int32 ``[group, token]``."""
        size = drafter.config.vocab_size
        order = np.empty(size, _WHOLE[self._tensors.dtype(TOKEN_ORDER)])
        self._tensors.read_bytes(TOKEN_ORDER, 0, order)
        if order.min() < 0 or order.max() >= size:
            wrong = int(order.min() if order.min() < 0 else order.max())
            raise TensorMismatchError(
                self._tensors.location, f"{TOKEN_ORDER} to have ids from 0 to {size - 1}", str(wrong)
            )
        return order.astype(np.int32).reshape(drafter.drafting.centroids, -1)


def drafter_folder_of(model: Path) -> Path | None:
    """Return the folder of the drafter beside a model's folder or file. None: there is none."""
    own = model.resolve()
    named = own.with_name(f"{own.name if own.is_dir() else own.stem}-{ASSISTANT}")
    places = (model / ASSISTANT, named) if own.is_dir() else (named,)
    return next(filter(_has_drafter, places), None)


def _has_drafter(folder: Path) -> bool:
    try:
        return is_drafter(read_object(real_file(folder, CONFIG), folder / CONFIG))
    except (GemmaJaxError, OSError):
        return False  # it is something else that is called so
