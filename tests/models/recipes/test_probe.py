"""The probe decides by times alone, so made-up times show every decision."""

import dataclasses

import jax
import pytest

from langchain_gemma_jax.models.recipes import Form, Plan, Recipe
from langchain_gemma_jax.models.recipes.probe import (
    BETWEEN_FEW_AND_MANY,
    BY_KERNEL,
    FEW,
    MANY,
    MOST_OF_FEW,
    ONE,
    Matrix,
    OutOfTimeError,
    probe,
)


def timer(times, default=1.0):
    """A made-up machine: its seconds by (out_first, form, rows), or by (matrix, form, rows)."""

    def measure(matrix, plan, rows):
        form = plan.form(rows)
        seconds = times.get((plan.out_first, form, rows), times.get((matrix, form, rows), default))
        if seconds is None:
            raise OutOfTimeError
        return seconds

    return measure


def chosen(times, start=Plan()):  # noqa: B008
    recipe, complete = probe(Recipe("float32", start, start), timer(times))
    assert recipe.layers.out_first == recipe.embed.out_first, "nothing says that the embedding wants its own layout"
    return recipe.layers, complete


def test_an_even_machine_keeps_the_plain_plan():
    assert chosen({}) == (Plan(), True)


@pytest.mark.parametrize("start", [Plan(one_row=Form.PAD_ROWS), Plan(False), Plan(few_rows=Form.EACH_ROW)])
def test_an_even_machine_keeps_any_plan_that_it_started_from(start):
    assert chosen({}, start) == (start, True)


def test_the_plain_forms_win_where_they_are_faster():
    times = {(True, Form.DOT, ONE): 0.1, (False, Form.DOT, ONE): 0.1}
    assert chosen(times, Plan(one_row=Form.PAD_ROWS)) == (Plan(), True)
    assert chosen({(True, Form.DOT, FEW): 0.1}, Plan(few_rows=Form.EACH_ROW)) == (Plan(), True)


@pytest.mark.parametrize("start", [Plan(one_row=Form.PAD_ROWS), Plan(False, few_rows=Form.EACH_ROW)])
def test_without_any_time_the_start_stays(start):
    assert chosen({(start.out_first, start.one_row, ONE): None}, start) == (start, False)


def test_small_differences_are_noise():
    times = {(True, Form.PAD_ROWS, ONE): 0.85, (False, Form.DOT, ONE): 0.85, (False, Form.DOT, FEW): 0.85}
    assert chosen(times) == (Plan(), True)


def test_a_lone_row_is_padded_where_that_is_faster():
    plan, _ = chosen({(True, Form.PAD_ROWS, ONE): 0.1, (False, Form.PAD_ROWS, ONE): 0.1})
    assert plan == Plan(one_row=Form.PAD_ROWS)


def test_several_rows_go_one_by_one_where_that_is_faster():
    plan, _ = chosen({(True, Form.EACH_ROW, FEW): 0.5, (False, Form.EACH_ROW, FEW): 0.5})
    assert plan == Plan(few_rows=Form.EACH_ROW)


def test_matrices_lie_inputs_first_where_that_is_faster():
    plan, _ = chosen({(False, Form.DOT, ONE): 0.2})
    assert plan == Plan(out_first=False)


def test_one_row_weighs_more_than_a_few():
    plan, _ = chosen({(False, Form.DOT, ONE): 2.0, (False, Form.DOT, FEW): 0.5, (False, Form.PAD_ROWS, ONE): 2.0})
    assert plan.out_first


@pytest.mark.parametrize("missing", [(False, Form.DOT, ONE), (True, Form.EACH_ROW, FEW), (False, Form.DOT, FEW)])
def test_without_time_for_everything_the_plain_form_stays(missing):
    plan, complete = chosen({missing: None})
    assert (plan, complete) == (Plan(), False)


def test_what_was_found_before_time_ran_out_is_used():
    plan, complete = chosen({(True, Form.PAD_ROWS, ONE): 0.1, (False, Form.DOT, FEW): None})
    assert (plan, complete) == (Plan(one_row=Form.PAD_ROWS), False)


def test_the_embedding_can_have_a_cliff_of_its_own():
    times = {(Matrix.EMBED, Form.EACH_ROW, FEW): 0.2}
    recipe, complete = probe(Recipe("float32"), timer(times))
    assert (recipe.layers, recipe.embed, complete) == (Plan(), Plan(few_rows=Form.EACH_ROW), True)


def test_the_embedding_need_not_share_the_cliff_of_the_layers():
    times = {(Matrix.LAYER, Form.EACH_ROW, FEW): 0.2}
    recipe, _ = probe(Recipe("float32"), timer(times))
    assert (recipe.layers, recipe.embed) == (Plan(few_rows=Form.EACH_ROW), Plan())


def test_the_weights_come_first_where_that_is_faster_than_row_by_row():
    times = {(Matrix.EMBED, Form.EACH_ROW, FEW): 0.2, (Matrix.EMBED, Form.WEIGHTS_FIRST, MOST_OF_FEW): 0.5}
    recipe, complete = probe(Recipe("float32"), timer(times))
    assert (recipe.layers, recipe.embed, complete) == (Plan(), Plan(few_rows=Form.WEIGHTS_FIRST), True)


def lying_inputs_first(one_row_outputs_first):
    """A machine whose layers want their inputs first, and whose embedding would be turned for several rows."""
    machine = timer(
        {
            (Matrix.LAYER, Form.DOT, ONE): 1.0,
            (Matrix.EMBED, Form.DOT, MOST_OF_FEW): 1.0,
            (Matrix.EMBED, Form.WEIGHTS_FIRST, MOST_OF_FEW): 0.4,
        }
    )

    def measure(matrix, plan, rows):
        if (matrix, rows, plan.out_first) == (Matrix.EMBED, ONE, True):
            return one_row_outputs_first
        return machine(matrix, plan, rows)

    start = Plan(out_first=False)
    recipe, _ = probe(Recipe("float32", start, start), measure)
    return recipe.embed


def test_the_embedding_can_have_a_layout_of_its_own():
    assert lying_inputs_first(1.1) == Plan(out_first=True, few_rows=Form.WEIGHTS_FIRST)


def test_but_not_where_that_makes_one_row_dearer():
    assert lying_inputs_first(1.3) == Plan(out_first=False)


TURNED = Plan(few_rows=Form.WEIGHTS_FIRST)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, TURNED),
        ({(Matrix.EMBED, Form.DOT, MOST_OF_FEW): 0.9}, TURNED),
        ({(Matrix.EMBED, Form.DOT, MOST_OF_FEW): 0.2}, Plan()),
        ({(Matrix.EMBED, Form.DOT, MOST_OF_FEW): None}, TURNED),
    ],
)
def test_what_is_known_of_a_release_is_tried_on_the_machine(times, expected):
    recipe, _ = probe(Recipe("float32", Plan(), TURNED), timer(times))
    assert (recipe.layers, recipe.embed) == (Plan(), expected)


def test_weights_first_has_to_beat_row_by_row():
    times = {(Matrix.EMBED, Form.EACH_ROW, FEW): 0.2, (Matrix.EMBED, Form.WEIGHTS_FIRST, MOST_OF_FEW): 0.9}
    recipe, _ = probe(Recipe("float32"), timer(times))
    assert recipe.embed == Plan(few_rows=Form.EACH_ROW)


def test_a_product_that_this_release_lacks_is_not_chosen(monkeypatch):
    def refuse(x, weight, plan):
        several = x.shape[0] > ONE and plan.few_rows is not Form.EACH_ROW
        if several or plan.one_row is Form.PAD_ROWS:  # and so no form is left to chance
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: unsupported element type")
        return x

    monkeypatch.setattr("langchain_gemma_jax.models.recipes.probe.linear", refuse)
    recipe, complete = probe(Recipe("float32", *(Plan(few_rows=Form.EACH_ROW),) * 2), budget=60)
    assert (recipe.embed.few_rows, complete) == (Form.EACH_ROW, True)


def test_whatever_is_measured_runs_twice_since_the_first_run_meets_cold_memory(monkeypatch):
    runs = []

    def least(took):
        runs.append(len(list(took)))
        return 1.0

    monkeypatch.setattr("langchain_gemma_jax.models.recipes.probe.ENOUGH", 0.0)
    monkeypatch.setattr("langchain_gemma_jax.models.recipes.probe.min", least, raising=False)
    probe(Recipe("float32"), budget=60)
    assert set(runs) == {2}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float16"])
def test_the_real_probe_measures(dtype):
    recipe, _ = probe(Recipe(dtype))
    assert (recipe.dtype, recipe.source) == (dtype, "probe")


def test_a_budget_of_nothing_gives_the_plain_recipe_at_once():
    recipe, complete = probe(Recipe("float32"), budget=0)
    assert (recipe.layers, complete) == (Plan(), False)


def test_the_probe_leaves_nothing_on_the_device():
    before = len(jax.live_arrays())
    probe(Recipe("float32"), budget=0)
    assert len(jax.live_arrays()) == before


def with_kernels(times, *, fast=False):
    plain = Plan(few_rows=Form.EACH_ROW)
    recipe, complete = probe(Recipe("float32", plain, plain), timer(times), with_kernels=True, kernels_are_fast=fast)
    return recipe.layers, recipe.embed, complete


def test_kernels_are_taken_where_they_are_faster():
    plain = Plan(few_rows=Form.EACH_ROW)
    both = {(True, Form.KERNEL, ONE): 0.5, (True, Form.KERNEL, FEW): 0.5}
    assert with_kernels(both) == (BY_KERNEL, BY_KERNEL, True)
    assert with_kernels({}) == (plain, plain, True)
    assert with_kernels({}, fast=True) == (BY_KERNEL, BY_KERNEL, True)
    slow = {(True, Form.KERNEL, rows): 1.3 for rows in (ONE, FEW)}
    assert with_kernels(slow, fast=True) == (plain, plain, True)
    for_embed = {(Matrix.EMBED, Form.KERNEL, ONE): 0.5}
    assert with_kernels(for_embed) == (plain, BY_KERNEL, True)


def test_long_prompts_are_for_kernels_where_these_are_faster_there_too():
    fast = {(True, Form.KERNEL, rows): 0.5 for rows in (ONE, FEW)}
    everywhere = dataclasses.replace(BY_KERNEL, many_rows=Form.KERNEL)
    assert with_kernels({**fast, (True, Form.KERNEL, MANY): 0.5}) == (everywhere, BY_KERNEL, True)
    assert with_kernels({**fast, (True, Form.KERNEL, MANY): 1.5}) == (BY_KERNEL, BY_KERNEL, True)
    assert with_kernels({**fast, (True, Form.KERNEL, MANY): None}) == (BY_KERNEL, BY_KERNEL, False)


def test_kernels_take_as_many_rows_as_they_are_not_clearly_slower_for():
    fast = {(True, Form.KERNEL, rows): 0.5 for rows in (ONE, FEW)} | {(True, Form.KERNEL, MANY): 1.5}
    for first_slow, up_to in ((16, MOST_OF_FEW), (32, 16), (64, 32)):
        slow = {(True, Form.KERNEL, rows): 1.3 for rows in BETWEEN_FEW_AND_MANY if rows >= first_slow}
        layers, embed, complete = with_kernels({**fast, **slow})
        assert (layers, embed, complete) == (dataclasses.replace(BY_KERNEL, kernel_rows=up_to), BY_KERNEL, True)
        assert (layers.form(up_to), layers.form(up_to + 1)) == (Form.KERNEL, Form.DOT)
    somewhat = {(True, Form.KERNEL, rows): 1.2 for rows in BETWEEN_FEW_AND_MANY}
    assert with_kernels({**fast, **somewhat}) == (BY_KERNEL, BY_KERNEL, True)
    assert with_kernels({**fast, (True, Form.DOT, 16): None}) == (BY_KERNEL, BY_KERNEL, False)


def test_where_kernels_lose_other_forms_are_looked_at():
    layers, embed, complete = with_kernels({(True, Form.PAD_ROWS, ONE): 0.1, (Matrix.EMBED, Form.KERNEL, ONE): 0.5})
    assert (layers.one_row, embed.one_row, complete) == (Form.PAD_ROWS, Form.PAD_ROWS, True)


def test_kernels_that_there_was_no_time_to_measure_are_taken_if_they_are_known_to_be_fast():
    plain = Plan(few_rows=Form.EACH_ROW)
    assert with_kernels({(True, Form.KERNEL, ONE): None}) == (plain, plain, False)
    assert with_kernels({(True, Form.KERNEL, ONE): None}, fast=True) == (BY_KERNEL, BY_KERNEL, False)
