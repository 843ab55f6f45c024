"""Recipes stored on disk: one small JSON file per machine, JAX release and dtype.

A file that cannot be read, or is malformed, counts as absent: the probe writes it again. If the folder cannot be
written, or if other users can write to it, each process measures, and nothing else changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import jax

from langchain_gemma_jax.config import cache_dir
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.seams.recipe import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import Form, Plan
from langchain_gemma_jax.private.file_locks import give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder, UnsafeFolderError, open_folder
from langchain_gemma_jax.private.writing import write_whole

SOON = 3600.0  # seconds that an incomplete measurement is valid
PATIENCE = 10.0  # seconds to wait for a measurement by another process
_LARGEST = 2**16  # bytes of a file


def recipe_file(dtype: str) -> Path:
    """Return the path of this machine's recipe for a dtype."""
    facts = [jax.__version__, version("jaxlib"), jax.default_backend(), jax.devices()[0].device_kind]
    facts += [platform.machine(), str(os.cpu_count()), _cpu_features(), kernels().identity]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return cache_dir() / "recipes" / f"{dtype}-{key}.json"


def recall(dtype: str) -> Recipe | None:
    """Return the stored recipe, or None."""
    path = recipe_file(dtype)
    try:
        folder = _open(path)
        stored = json.loads(folder.read(path.name, _LARGEST))
        if stored["complete"] is not True and not 0 <= time.time() - folder.stat(path.name).st_mtime < SOON:
            return None
        return _from_json(stored, dtype)
    except (OSError, UnsafeFolderError, DamagedError, ValueError, KeyError, TypeError):
        return None


def remember(recipe: Recipe, *, complete: bool = True) -> None:
    """Store a recipe for later processes; an incomplete one is valid for an hour.

    A failure is not an error.
    """
    path = recipe_file(recipe.dtype)
    plans = {"layers": _to_json(recipe.layers), "embed": _to_json(recipe.embed)}
    forms = {"attention": recipe.attention.value, "between": recipe.between.value}
    text = json.dumps({"dtype": recipe.dtype, "complete": complete, **plans, **forms})
    with contextlib.suppress(OSError, UnsafeFolderError):
        write_whole(_open(path), path.name, text.encode() + b"\n")


@contextmanager
def alone(dtype: str) -> Iterator[None]:
    """Hold a lock against other processes that measure. After ``PATIENCE`` seconds, go on without it."""
    path = recipe_file(dtype).with_suffix(".lock")
    folder = hold = None
    with contextlib.suppress(OSError, UnsafeFolderError):  # or a file system without locks: then measure without one
        folder = _open(path)
        hold = take(folder, path.name, PATIENCE)
    try:
        yield
    finally:
        if folder is not None and hold is not None:
            with contextlib.suppress(OSError):
                give_back(folder, path.name, hold)


def _open(file: Path) -> Folder:
    return open_folder(file.parent, file.parent)


def _to_json(plan: Plan) -> dict[str, object]:
    forms = {"one_row": plan.one_row.value, "few_rows": plan.few_rows.value, "many_rows": plan.many_rows.value}
    return {"out_first": plan.out_first, "kernel_rows": plan.kernel_rows, **forms}


def _from_json(value: Mapping[str, object], dtype: str) -> Recipe:
    if value["dtype"] != dtype:
        raise ValueError(f"expected a recipe for {dtype}")
    layers, embed, attention = _plan(value["layers"]), _plan(value["embed"]), AttentionForm(str(value["attention"]))
    return Recipe(dtype, layers, embed, attention, BetweenForm(str(value["between"])), source="disk")


def _plan(value: object) -> Plan:
    if not isinstance(value, dict):
        raise TypeError("a plan is an object")
    out_first = value["out_first"]
    if not isinstance(out_first, bool):
        raise TypeError("out_first is a bool")
    kernel_rows = value["kernel_rows"]
    if not isinstance(kernel_rows, int) or not 0 < kernel_rows <= Plan.kernel_rows:
        raise ValueError(f"kernel_rows is a number up to {Plan.kernel_rows}")
    return Plan(out_first, Form(value["one_row"]), Form(value["few_rows"]), Form(value["many_rows"]), kernel_rows)


def _cpu_features() -> str:
    """Return the processor's features: by them the same JAX picks other kernels."""
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as file:
        for line in file:  # the first processor's: with many, the file is long and slow
            if line.startswith(("flags", "Features")):
                return line.rstrip("\n")
    return platform.processor()  # last, because it starts a process
