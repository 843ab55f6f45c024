"""The names of programs: they hold whatever a program depends on, and nothing that makes no difference."""

from __future__ import annotations

import jax
import pytest

from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables import fingerprint
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.tiny import CONTEXT
from tests.models.int8 import Int8Storage


@pytest.fixture
def shape(tiny_model):
    return Shape(tiny_model.architecture, tiny_model.recipe, 320, CONTEXT, PageCounts(20, 9, 8), 3, loop_steps=1)


class Named(SingleDevice):
    """A place on the same device that programs are told apart by."""

    key = "here"


def test_a_name_holds_whatever_a_program_depends_on(shape, tiny_model, monkeypatch):
    from dataclasses import replace

    where = tiny_model.placement
    names = {fingerprint.family(shape, where)}
    for other in (
        replace(shape, max_context=64),
        replace(shape, pages=PageCounts(20, 9, 16)),
        replace(shape, pages=PageCounts(21, 9, 8)),
        replace(shape, local_entries=4),
        replace(shape, loop_steps=2),
        replace(shape, valid_vocab=319),
        replace(shape, recipe=replace(shape.recipe, attention_pairs=3)),
        replace(shape, recipe=replace(shape.recipe, cache_dtype="bfloat16")),
        replace(shape, recipe=replace(shape.recipe, storage=Int8Storage())),
        replace(shape, architecture=Gemma(tiny_model.config.replace(norm_eps=1e-5))),
    ):
        names.add(fingerprint.family(other, where))
    for setting, value in (("jax_default_matmul_precision", "highest"), ("jax_enable_x64", True)):
        before = getattr(jax.config, setting)
        jax.config.update(setting, value)
        names.add(fingerprint.family(shape, where))
        jax.config.update(setting, before)
    for place in ("here", "elsewhere"):
        monkeypatch.setattr(Named, "key", place)
        names.add(fingerprint.family(shape, Named(tiny_model.device)))
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "compiler_flags", lambda: ("--xla_cpu_enable_fast_math=true", ""))
    names.add(fingerprint.family(shape, where))
    monkeypatch.undo()
    monkeypatch.setattr(fingerprint, "source_digest", lambda: "other code")
    names.add(fingerprint.family(shape, where))
    monkeypatch.undo()
    assert len(names) == 1 + 10 + 2 + 2 + 1 + 1


def test_a_name_does_not_hold_what_makes_no_difference(shape, tiny_model, tmp_path):
    from dataclasses import replace

    where = tiny_model.placement
    name = fingerprint.family(shape, where)
    probed = replace(shape, recipe=replace(shape.recipe, source="probe"))
    assert fingerprint.family(probed, where) == name
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    assert fingerprint.family(shape, where) == name
    jax.config.update("jax_compilation_cache_dir", before)
