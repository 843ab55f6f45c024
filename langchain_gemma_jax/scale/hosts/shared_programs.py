"""The name of a model's programs on several hosts, from everything that has to be the same on all of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, TypeAlias

import jax
import jaxlib.version

from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables.traced_source import source_digest
from langchain_gemma_jax.models.seams.placement import Placement

HostMessage: TypeAlias = dict[str, Any]


def programs_name(shape: Shape, where: Placement) -> str:
    """Return the name of a shape's programs in a place. Two hosts have the same one only if they trace the same."""
    facts = [
        jax.__version__,
        jaxlib.version.__version__,
        source_digest(),
        where.key,
        repr(replace(shape, recipe=replace(shape.recipe, source="default"))),
    ]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]
