"""Where a model goes: to the device that is named, and there again."""

from __future__ import annotations

import jax

from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.placement import SingleDevice


def test_the_recipe_and_the_device_are_the_callers(folder):
    recipe, device = Recipe("bfloat16"), jax.local_devices()[0]
    with load(folder, recipe=recipe, device=device) as model:
        assert model.recipe is recipe
        assert model.params["embed"].dtype == "bfloat16"
        assert model.params["embed"].devices() == {device}


def test_a_placement_may_be_named_and_a_model_knows_its_own(folder):
    here = SingleDevice(jax.local_devices()[0])
    for device in (None, here, here.device):
        with load(folder, device=device) as model:
            assert model.placement == here
            assert model.device == here.device
            again = load_again(model)
            assert again.placement == here
            again.close()
