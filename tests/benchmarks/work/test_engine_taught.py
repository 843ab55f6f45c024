from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.work.checkpoint import write_checkpoints
from benchmarks.work.taught import teach
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.params import leaves
from langchain_gemma_jax.models.seams.weights import Plan
from tests.benchmarks.work.test_checkpoint import TINY

PROMPT = [2, 9, 30, 41, 17]
ANSWER = [7, 8, 7, 9, 7, 8, 7, 50, 3, 3]  # the same tokens lead to different ones
WIDER = {**TINY, "hidden_size": 64}

pytestmark = pytest.mark.usefixtures("quick_compiles")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, WIDER)
    return folder


def model(folder, dtype, *, out_first):
    recipe = Recipe(dtype, layers=Plan(out_first=out_first), embed=Plan(out_first=out_first))
    config, tensors, naming = open_folder(folder / dtype)
    with tensors:
        params = place(tensors, naming, config, dtype, recipe.layout, jax.devices()[0])
    return Model(Gemma(config), params, tokenizer=None, recipe=recipe, name="tiny")


def likeliest(model, tokens):
    """The likeliest token behind each of ``tokens``."""
    cache = allocate(model.config.cache_layout, rows=1, capacity=64, dtype=model.recipe.dtype)
    row = jnp.zeros((1,), jnp.int32)
    read = jax.jit(lambda params, *rest: forward(params, model.config, model.recipe, *rest))
    hidden, _ = read(model.params, jnp.array([tokens], jnp.int32), row, row + len(tokens), cache)
    return np.argmax(logits(model.params, model.config, model.recipe, hidden[0]), axis=-1).tolist()


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "out_first"), [("float32", False), ("bfloat16", True)])
def test_a_taught_model_gives_its_answer_and_no_other_weights_change(folder, dtype, out_first):
    plain = model(folder, dtype, out_first=out_first)
    taught = teach(plain, PROMPT, ANSWER)
    said = [*PROMPT, *ANSWER[:-1]]
    assert likeliest(taught, said)[len(PROMPT) - 1 :] == ANSWER
    assert likeliest(plain, said)[len(PROMPT) - 1 :] != ANSWER
    pairs = list(zip(leaves(plain.params), leaves(taught.params), strict=True))
    assert sum(one is not other for one, other in pairs) == 2
    assert all((one.shape, one.dtype, one.sharding) == (two.shape, two.dtype, two.sharding) for one, two in pairs)
