"""The choice of how matrices in blocks are multiplied on this machine: by kernels, as was measured, or a safe default.

Where the package's kernels for an instruction set run, they multiply. Portable ones are measured beside XLA's forms. If
they are faster for one row, they are used for several rows too.

On a CPU the fastest form for one row changes between releases of JAX, by up to a factor of twenty. Several rows are
fastest in tiles with all releases that were tried.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import jax
import numpy as np

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.recipes.store import alone, recipe_file
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForm, BlockForms
from langchain_gemma_jax.models.seams.weights import PLAIN
from langchain_gemma_jax.private.folder import DamagedError, UnsafeFolderError, open_folder
from langchain_gemma_jax.private.writing import write_whole

ON_ACCELERATORS = BlockForms(BlockForm.SUMS, BlockForm.WHOLE, BlockForm.WHOLE)
"""Forms for GPUs and TPUs: their compiler fuses the unpacking into the sums, or into the product with several rows."""

BY_KERNELS = replace(DEFAULT, one_row=BlockForm.KERNEL, few_rows=BlockForm.KERNEL)
CLEARLY = 0.8  # another form has to take at most this share of the tiles' time: noise must not flip the choice
SHAPE, TRIED = (2048, 2048), ("Q4_K", "Q8_0")
RUNS = 6
_NAME, _LARGEST = "blocks", 2**12
_lock = threading.Lock()
_chosen: dict[str, BlockForms] = {}


def choose_block_forms(activations: str | None = None, *, divided: bool = False) -> BlockForms:
    """Return the forms for this machine. Matrices divided among devices get forms that XLA can divide.

    Without kernels for this machine's instruction set, the first call measures for about a second and stores the result
    on disk. By default, activations are rounded to eight bits where kernels multiply: elsewhere that gains nothing.
    """
    forms = _of_this_machine(divided=divided)
    return replace(forms, activations=activations or ("int8" if forms.one_row is BlockForm.KERNEL else "float32"))


def _of_this_machine(*, divided: bool) -> BlockForms:
    backend = jax.default_backend()
    if backend != "cpu":
        return ON_ACCELERATORS
    if divided:
        return DEFAULT
    with _lock:
        if backend not in _chosen:
            _chosen[backend] = _recall() or _known() or _measured_alone()
        return _chosen[backend]


def measured(seconds: Mapping[BlockForm, float]) -> BlockForms:
    """Return the default forms, with another one for one row if that is clearly faster by these times."""
    tiles, sums = seconds[BlockForm.TILES], seconds[BlockForm.SUMS]
    if seconds.get(BlockForm.KERNEL, math.inf) < CLEARLY * min(tiles, sums):
        return BY_KERNELS
    return replace(DEFAULT, one_row=BlockForm.SUMS) if sums < CLEARLY * tiles else DEFAULT


def _known() -> BlockForms | None:
    """Return the forms where measuring is not needed: kernels for an instruction set are the fastest by far."""
    ours = kernels()
    return BY_KERNELS if ours.run and ours.variant != "portable" else None


def _measured_alone() -> BlockForms:
    with alone(_NAME):
        if (known := _recall()) is None:  # another process may have measured while this one waited
            known = measured(_seconds())
            _remember(known)
        return known


def _seconds() -> Mapping[BlockForm, float]:
    """Return the time of products in each form, summed over the formats that are tried.

    The forms are timed in turns, so that other load on the machine affects all of them alike.
    """
    forms = [BlockForm.TILES, BlockForm.SUMS, *([BlockForm.KERNEL] if kernels().run else [])]
    x = jax.device_put(np.ones((1, SHAPE[1]), np.float32))
    arrays = {kind: _ones(kind) for kind in TRIED}
    tried = [
        _Tried(form, BlockMatrix(arrays[kind], kind, "float32", BlockForms(form, form, form)), x)
        for form in forms
        for kind in TRIED
    ]
    for _ in range(RUNS):
        for each in tried:
            each.run()
    return {form: sum(each.best for each in tried if each.form is form) for form in forms}


class _Tried:
    """A compiled product in one form, and its best time."""

    def __init__(self, form: BlockForm, matrix: BlockMatrix, x: jax.Array) -> None:
        self.form, self.best = form, math.inf
        self._given, self._program = (matrix, x), None
        with suppress(jax.errors.JaxRuntimeError):  # some releases have no such product
            self._program = jax.jit(BlockMatrix.product, static_argnums=2).lower(matrix, x, PLAIN).compile()

    def run(self) -> None:
        """Time one run; keep the best."""
        if self._program is None:
            return
        began = time.perf_counter()
        try:
            jax.block_until_ready(self._program(*self._given))
        except jax.errors.JaxRuntimeError:
            self._program, self.best = None, math.inf
            return
        self.best = min(self.best, time.perf_counter() - began)


def _ones(kind: str) -> tuple[jax.Array, ...]:
    outputs, inputs = SHAPE
    blocks = (outputs, inputs // BLOCK_FORMATS[kind].elements)
    specs = ((*blocks, *part.shape) for part in BLOCK_FORMATS[kind].parts)
    arrays = (
        np.ones(shape, numpy_dtype(part.dtype)) for shape, part in zip(specs, BLOCK_FORMATS[kind].parts, strict=True)
    )
    return tuple(map(jax.device_put, arrays))  # an explicit transfer: the caller may have disallowed implicit ones


def _recall() -> BlockForms | None:
    path = recipe_file(_NAME)
    try:
        stored = json.loads(open_folder(path.parent, path.parent).read(path.name, _LARGEST))
        return BlockForms(*(BlockForm(stored[name]) for name in ("one_row", "few_rows", "more_rows")))
    except (OSError, UnsafeFolderError, DamagedError, ValueError, KeyError, TypeError):
        return None


def _remember(forms: BlockForms) -> None:
    """Store the forms for later processes. A failure is not an error."""
    path = recipe_file(_NAME)
    text = json.dumps({"one_row": forms.one_row, "few_rows": forms.few_rows, "more_rows": forms.more_rows})
    try:
        write_whole(open_folder(path.parent, path.parent), path.name, text.encode() + b"\n")
    except (OSError, UnsafeFolderError):
        return
