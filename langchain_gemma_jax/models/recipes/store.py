"""Recipes remembered on disk: one small JSON file a machine, JAX release and dtype.

A file that cannot be read, or does not say what it should, counts as absent: the probe writes it
anew. A folder that cannot be written costs a probe a process and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import jax

from langchain_gemma_jax.config import cache_dir
from langchain_gemma_jax.models.recipes.recipe import Recipe
from langchain_gemma_jax.models.weights import Form, Plan

SOON = 3600.0  # seconds that an incomplete measurement is good for
PATIENCE = 10.0  # seconds that a measurement by another process is waited for


def recipe_file(dtype: str) -> Path:
    """Where this machine's recipe for a dtype is kept."""
    facts = [jax.__version__, version("jaxlib"), jax.default_backend(), jax.devices()[0].device_kind]
    facts += [platform.machine(), str(os.cpu_count()), _cpu_features()]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return cache_dir() / "recipes" / f"{dtype}-{key}.json"


def recall(dtype: str) -> Recipe | None:
    """The remembered recipe, or None."""
    path = recipe_file(dtype)
    try:
        found = json.loads(path.read_bytes())
        if found["complete"] is not True and not 0 <= time.time() - path.stat().st_mtime < SOON:
            return None
        return _from_json(found, dtype)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(recipe: Recipe, *, complete: bool = True) -> None:
    """Keep a recipe for the processes that come after; for some time only, if there was no time to measure all.

    Failing to is not an error.
    """
    path = recipe_file(recipe.dtype)
    plans = {"layers": _to_json(recipe.layers), "embed": _to_json(recipe.embed)}
    text = json.dumps({"dtype": recipe.dtype, "complete": complete, **plans})
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A reader sees the old file or the whole new one, whoever else writes at the same time.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text + "\n")
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


@contextmanager
def alone(dtype: str) -> Iterator[None]:
    """Of the processes that come here at once, one is inside; the others wait, but never long."""
    descriptor = None
    with contextlib.suppress(OSError):
        path = recipe_file(dtype).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + PATIENCE
        while descriptor is not None and not _locked(descriptor) and time.monotonic() < until:
            time.sleep(0.01)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)  # which gives the lock back, as the end of the process would


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: better twice than never
        return True
    return True


def _to_json(plan: Plan) -> dict[str, object]:
    return {"out_first": plan.out_first, "one_row": plan.one_row.value, "few_rows": plan.few_rows.value}


def _from_json(value: Mapping[str, object], dtype: str) -> Recipe:
    if value["dtype"] != dtype:
        raise ValueError(f"expected a recipe for {dtype}")
    return Recipe(dtype, _plan(value["layers"]), _plan(value["embed"]), source="disk")


def _plan(value: object) -> Plan:
    if not isinstance(value, dict):
        raise TypeError("a plan is an object")
    out_first = value["out_first"]
    if not isinstance(out_first, bool):
        raise TypeError("out_first is a bool")
    return Plan(out_first, Form(value["one_row"]), Form(value["few_rows"]))


def _cpu_features() -> str:
    """What the processor can do: the same JAX picks other kernels with other features."""
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as file:
        for line in file:  # the first processor's: with many, the file is long and slow
            if line.startswith(("flags", "Features")):
                return line.rstrip("\n")
    return platform.processor()  # which starts a process
