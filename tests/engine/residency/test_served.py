"""What is settled for a model when it is served: where a turn ends, its ladders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.residency.served import (
    ACCELERATOR_CHUNKS,
    CPU_CHUNKS,
    LOOP_STEPS,
    Served,
    drafts_pay,
    ladders_for,
    loop_steps,
    stop_ids,
)
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.weights import Form


@pytest.mark.parametrize(
    ("declared", "found"),
    [([1, 106], {1, 106}), (106, {106}), ("106", set()), ([1, True, "2", None], {1}), (None, set()), (True, set())],
)
def test_a_turn_ends_where_tokenizer_and_checkpoint_say_so(tiny_model, declared, found):
    model = replace(tiny_model, generation_defaults={"eos_token_id": declared})
    own = set(model.tokenizer.eos_ids) | set(model.config.eos_ids)
    assert stop_ids(model) - own == found - own
    assert stop_ids(model) >= found | own if declared is not True else stop_ids(model) >= own


def test_ladders_suit_the_platform_and_end_at_the_context():
    assert ladders_for(Settings(), 3000, "cpu").chunks == CPU_CHUNKS
    assert ladders_for(Settings(), 3000, "gpu").chunks == ACCELERATOR_CHUNKS
    assert ladders_for(Settings(), 3000, "gpu").capacities == (512, 1024, 2048, 3000)
    own = Ladders(chunks=(8,), capacities=(64,), rows=(1, 2))
    assert ladders_for(Settings(ladders=own), 100, "cpu") == replace(own, capacities=(64, 100))


def test_the_loop_is_for_accelerators():
    assert loop_steps(Settings(), "cpu") == 1
    assert loop_steps(Settings(), "gpu") == LOOP_STEPS
    assert loop_steps(Settings(loop_steps=4), "cpu") == 4


def test_drafts_are_for_where_rows_are_cheap():
    each = Recipe(dtype="float32")
    assert drafts_pay(Settings(drafts=True), each) is True
    assert drafts_pay(Settings(drafts=False), each) is False
    slow = replace(each, embed=replace(each.embed, few_rows=Form.EACH_ROW))
    assert drafts_pay(Settings(), slow) is False
    assert drafts_pay(Settings(drafts=True), slow) is True


def test_two_services_of_one_model_are_not_the_same(tiny_model):
    one, other = (Served(tiny_model, number, 128, frozenset()) for number in (1, 2))
    assert one != other
    assert len({one, other}) == 2
    assert repr(one) == "Served('local and global', max_context=128)"
