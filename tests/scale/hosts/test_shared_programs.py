"""The name of programs that several hosts share: whatever they trace by is in it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import jax
import pytest

from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.scale.hosts import shared_programs
from langchain_gemma_jax.scale.hosts.shared_programs import programs_name
from tests.engine.tiny import CONFIGS, CONTEXT

SHAPE = Shape(Gemma(CONFIGS["local and global"]), Recipe("float32"), 320, CONTEXT, PageCounts(1, 1))
WHERE = SimpleNamespace(key="4 devices of a kind")


@pytest.mark.parametrize("other", ["recipe", "place", "release", "source"])
def test_hosts_that_trace_otherwise_have_another_name(monkeypatch, other):
    shape, where, before = SHAPE, WHERE, programs_name(SHAPE, WHERE)
    match other:
        case "recipe":
            shape = replace(SHAPE, recipe=Recipe("bfloat16"))
        case "place":
            where = SimpleNamespace(key="8 devices of a kind")
        case "release":
            monkeypatch.setattr(jax, "__version__", "9.9.9")
        case "source":
            monkeypatch.setattr(shared_programs, "source_digest", lambda: "another")
    assert programs_name(shape, where) != before


def test_where_a_recipe_comes_from_makes_no_difference():
    measured = replace(SHAPE, recipe=replace(SHAPE.recipe, source="probe"))
    assert programs_name(measured, WHERE) == programs_name(SHAPE, WHERE)
