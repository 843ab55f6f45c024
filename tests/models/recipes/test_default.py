"""Where nothing was measured, what is known of each release keeps off its cliffs."""

import pytest

from langchain_gemma_jax.models.recipes import Form, Plan, Recipe
from langchain_gemma_jax.models.recipes.default import default_recipe


@pytest.mark.parametrize("version", ["0.9.2", "0.9.9", "0.9.2.dev20260101"])
def test_old_releases_are_fast_with_one_16_bit_row(version):
    assert default_recipe("bfloat16", "cpu", version).layers == Plan()
    assert default_recipe("bfloat16", "cpu", version).embed == Plan(few_rows=Form.WEIGHTS_FIRST)
    assert default_recipe("float16", "cpu", version).embed == Plan(few_rows=Form.EACH_ROW)


@pytest.mark.parametrize("version", ["0.11.0", "0.12.0.1", "1.0", "0.10.0rc1"])
def test_new_releases_are_fast_with_two(version):
    recipe = default_recipe("bfloat16", "cpu", version)
    assert recipe.layers == recipe.embed == Plan(one_row=Form.PAD_ROWS)


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0.1"])
def test_float32_lies_inputs_first(version):
    assert default_recipe("float32", "cpu", version).layers == Plan(out_first=False)


def test_old_releases_want_the_embedding_on_the_left_of_several_rows():
    assert default_recipe("float32", "cpu", "0.9.2").embed == Plan(few_rows=Form.WEIGHTS_FIRST)
    assert default_recipe("float32", "cpu", "0.12.0.1").embed == Plan(out_first=False)


@pytest.mark.parametrize("backend", ["gpu", "tpu"])
def test_accelerators_get_the_plain_recipe(backend):
    assert default_recipe("bfloat16", backend) == Recipe("bfloat16")
