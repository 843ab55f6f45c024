"""A model's file of mapped weights: its name, and everything that its bytes depend on."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax

from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.mapped.array_file import ArrayFile
from langchain_gemma_jax.models.mapped.weight_files import Draft, Origin, WeightFiles
from langchain_gemma_jax.models.seams.block_forms import DEFAULT

_MODELS = Path(__file__).parents[1]
# The code that decides the bytes of an array. A file that other code has written is written again.
_CODE = (
    "packed/*.py", "mapped/*.py", "gguf/*.py", "checkpoint/*.py", "checkpoint/*/*.py", "loading/place.py",
    "seams/tensor_source.py", "configuration/abstract.py",
)  # fmt: skip


def map_weights(opened: Opened, plan: LoadPlan, files: WeightFiles | None) -> ArrayFile | Draft | str:
    """Map the weights of a plan. Return the arrays, or a file to be filled, or the reason why there is neither."""
    if files is None:
        return "configure(map_weights=False) says so"
    if plan.placement.platform != "cpu" or not plan.placement.one_device:
        return "they are copied to the device"
    places = opened.places(plan)
    if places is None:
        return "transformers reads them"
    if (why := files.refuses(places)) is not None:
        return why
    storage = plan.recipe.storage
    if storage.block_forms is not None:  # the same bytes are multiplied in many ways
        storage = storage.with_block_forms(DEFAULT)
    how = (repr(storage), plan.recipe.dtype, repr(plan.recipe.layout))
    specs: list[Any] = jax.tree.leaves(plan.architecture.abstract(plan.recipe))
    arrays = [(spec.shape, spec.dtype, spec.transposed) for spec in specs]
    facts = _digest(_code(), repr(plan.architecture), places, arrays, how)
    stamps = _digest(sorted(plan.files.stamps.items()))
    origin = Origin(facts, stamps, partial(_content, plan.files))
    return files.open(_digest(str(plan.files.folder.resolve()), how).hex()[:40], origin, places)


def _content(files: Unchanged) -> bytes:
    """Return a digest of the bytes of a model's files, after a check that they are still those that were opened.

    Raises:
        OSError: they cannot be read, or have changed: their bytes would be taken for those of the arrays.
    """
    found = bytes.fromhex(files.digest())
    try:
        files.check()
    except CheckpointError as error:
        raise OSError(str(error)) from error
    return found


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


@cache
def _code() -> str:
    found = hashlib.sha256()
    for pattern in _CODE:
        for path in sorted(_MODELS.glob(pattern)):
            found.update(path.relative_to(_MODELS).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
