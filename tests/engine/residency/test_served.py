"""The facts that are settled when a model is served: where a turn ends, its ladders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SOURCES, SUFFIXES
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.served import (
    ACCELERATOR_CHUNKS,
    CPU_CHUNKS,
    KERNEL_CHUNKS,
    LOOP_STEPS,
    Served,
    draft_sources,
    ladders_for,
    loop_steps,
    stop_ids,
)
from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.weights import Form
from tests.engine.tiny import CONFIGS, RECIPES
from tests.models.int8 import Int8Storage


@pytest.mark.parametrize(
    ("declared", "found"),
    [([1, 106], {1, 106}), (106, {106}), ("106", set()), ([1, True, "2", None], {1}), (None, set()), (True, set())],
)
def test_a_turn_ends_where_tokenizer_and_checkpoint_say_so(tiny_model, declared, found):
    model = replace(tiny_model, generation_defaults={"eos_token_id": declared})
    own = set(model.tokenizer.eos_ids) | set(model.config.eos_ids)
    assert stop_ids(model) - own == found - own
    assert stop_ids(model) >= found | own if declared is not True else stop_ids(model) >= own


def shape_of(name, recipe, context):
    return Shape(Gemma(CONFIGS[name]), recipe, 320, context, PageCounts(20, 9, 8))


def test_where_xla_attends_ladders_suit_the_platform_and_end_at_the_context():
    shape = shape_of("by kernels", Recipe("float32"), 3000)
    assert ladders_for(Settings(), shape, "cpu").chunks == CPU_CHUNKS
    assert ladders_for(Settings(), shape, "gpu").chunks == ACCELERATOR_CHUNKS
    assert ladders_for(Settings(), shape, "gpu").capacities == (2048, 3000)
    own = Ladders(chunks=(8,), capacities=(64,), rows=(1, 2), draft=7)
    short = replace(shape, max_context=100)
    assert ladders_for(Settings(ladders=own), short, "cpu") == replace(own, capacities=(64, 100))


@pytest.mark.skipif(not kernels_run(), reason="the kernels do not run here")
def test_where_kernels_attend_one_capacity_is_enough_and_one_large_chunk_where_they_skip_padding():
    plain = RECIPES["by kernels"]
    packed = replace(plain, storage=Int8Storage())
    by_kernel = replace(plain, layers=replace(plain.layers, many_rows=Form.KERNEL))
    own = Ladders(chunks=(8, 24), capacities=(64,), rows=(1, 2))
    for recipe, skips in ((plain, False), (packed, True), (by_kernel, True)):
        shape = shape_of("by kernels", recipe, 3000)
        found = ladders_for(Settings(), shape, "cpu")
        assert (found.capacities, found.padding_is_free) == ((3000,), skips)
        assert found.chunks == (KERNEL_CHUNKS if skips else CPU_CHUNKS)
        asked = ladders_for(Settings(ladders=own), shape, "cpu")
        assert asked == replace(own, capacities=(3000,), padding_is_free=skips)
    heads_of_8 = ladders_for(Settings(), shape_of("all global", plain, 3000), "cpu")
    assert heads_of_8.capacities == (2048, 3000)


def test_the_loop_is_for_accelerators():
    assert loop_steps(Settings(), "cpu") == 1
    assert loop_steps(Settings(), "gpu") == LOOP_STEPS
    assert loop_steps(Settings(loop_steps=4), "cpu") == 4


def test_drafts_are_for_where_rows_are_cheap():
    each = Recipe(dtype="float32")
    slow = replace(each, embed=replace(each.embed, few_rows=Form.EACH_ROW))
    for drafter, every in ((True, SOURCES), (False, (SUFFIXES, PROMPT))):
        assert draft_sources(Settings(drafts=True), each, drafter=drafter) == every
        assert draft_sources(Settings(drafts=False), each, drafter=drafter) == ()
        assert draft_sources(Settings(drafts=("prompt",)), each, drafter=drafter) == ("prompt",)
        assert draft_sources(Settings(drafts=("mtp",)), each, drafter=drafter) == (("mtp",) if drafter else ())
        assert draft_sources(Settings(), each, drafter=drafter) == every
        assert draft_sources(Settings(), slow, drafter=drafter) == ()
        assert draft_sources(Settings(drafts=True), slow, drafter=drafter) == every


def test_two_services_of_one_model_are_not_the_same(tiny_model):
    one, other = (Served(tiny_model, number, 128, frozenset()) for number in (1, 2))
    assert one != other
    assert len({one, other}) == 2
    assert repr(one) == "Served('local and global', max_context=128)"
