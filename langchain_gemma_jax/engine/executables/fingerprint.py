"""The names under which compiled programs are kept: two programs have the same name only if they are equal.

A program is looked up without being traced, so its name must cover everything that tracing and compiling depend on: the
model's configuration, the storage and multiplication of its matrices, the sizes, the placement, JAX's settings, the
compiler's flags, and the traced source.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from dataclasses import replace

import jax
import jaxlib.version

from langchain_gemma_jax.config import compiler_flags
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables.traced_source import module_digest, source_digest
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.seams.placement import Placement

WITHOUT_EFFECT = (  # prefixes of settings that no compiled program depends on
    "jax_array_garbage",
    "jax_compilation_cache",
    "jax_debug_log",
    "jax_disable_jit",  # programs are compiled all the same
    "jax_dump",
    "jax_enable_compilation_cache",
    "jax_explain",
    "jax_log",
    "jax_persistent_cache",
    "jax_pprint",
    "jax_raise_persistent_cache",
    "jax_traceback",
    "jax_tracer_error",
    "jax_transfer_guard",
)


def family(shape: Shape, placement: Placement) -> str:
    """Return a digest of what the programs of one model and placement have in common."""
    device = placement.devices[0]
    theirs = (
        shape.architecture,
        *shape.architecture.encoders,
        shape.recipe.storage,
        placement,
    )  # these may come from a user's module
    client = device.client
    whose = (
        () if placement.here else (f"host {client.process_index()}",)
    )  # each host keeps its own, perhaps in one folder
    facts = [
        jax.__version__,
        jaxlib.version.__version__,
        platform.python_version(),
        source_digest(),
        *(module_digest(type(part).__module__) for part in theirs),
        client.platform,
        client.platform_version,
        device.device_kind,
        placement.key,
        *whose,
        repr(
            replace(shape, recipe=replace(shape.recipe, source="default"))
        ),  # the source of the choice does not matter
        str(_processors()),
        kernels().targets,  # this registers them with XLA, before any program that calls them is loaded
        *compiler_flags(),
        *settings(),
    ]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def name(family: str, key: ProgramKey) -> str:
    """Return the name of one program."""
    return f"program/{family}/{'/'.join(str(part) for part in key)}"


def label(model: str, key: ProgramKey) -> str:
    """Return a program's description for people."""
    return f"{model} {' '.join(str(part) for part in key)}"


def settings() -> Iterable[str]:
    """Yield JAX's settings that a program may depend on."""
    for setting, value in sorted(jax.config.values.items()):
        if not setting.startswith(WITHOUT_EFFECT):
            yield f"{setting}={value!r}"


def _processors() -> int:
    """Return the number of processors that XLA may use: when it compiles, it divides loops among them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
