"""Our drafters against transformers' assisted generation: ``make_drafters.py`` wrote what it drafts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.gemma.drafter import ChainStart, DraftTarget
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.loading.drafters import DrafterFiles
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.placement import placement_of
from tests.goldens.drafter_files import golden, write_drafter, write_target
from tests.parity.drafters import GUESSES, TARGETS, VOCABULARY

LENGTH = 80  # every context is padded to it
RECIPES = {
    "xla": Recipe("float32"),
    "kernels": Recipe("float32", attention=AttentionForm.KERNEL, between=BetweenForm.KERNEL),
}


@pytest.mark.parametrize("way", RECIPES)
@pytest.mark.parametrize("name", TARGETS)
def test_each_round_drafts_and_accepts_what_transformers_does(name, way, tmp_path):
    """The keys of rejected tokens are in the cache, as they are in the engine's pages: no chain may see them."""
    recipe, device = RECIPES[way], jax.local_devices()[0]
    config, source, naming = open_folder(write_target(name, tmp_path / "target"))
    with source:
        params = place(source, naming, config, "float32", recipe.layout, device)
    files = DrafterFiles(write_drafter(name, tmp_path / "drafter"), config, name)
    loaded = files.read(files.drafter(recipe), placement_of(device))
    files.close()

    @jax.jit
    def read(tokens, count):
        cache = allocate(config.cache_layout, 1, LENGTH, "float32")
        hidden, cache = forward(params, config, recipe, tokens, jnp.zeros(1, jnp.int32), count, cache)
        return hidden[0], logits(params, config, recipe, hidden[0]), cache

    @jax.jit
    def guess(token, held, hidden, cache):
        start = ChainStart(token, held, hidden)
        return loaded.drafter.chain(
            loaded.params, DraftTarget(params, config, recipe, VOCABULARY), start, cache, GUESSES
        )

    accepted = 0
    for said in golden()[name]:
        prompt, answer, done = said["prompt"], said["answer"], 1
        for drafts in said["drafts"]:
            context = [*prompt, *answer[:done]]
            # Rejected tokens behind the context: their keys are in the cache.
            behind = [*context[:-1], *([3] * 4)]
            tokens = np.zeros((1, LENGTH), np.int32)
            tokens[0, : len(behind)] = behind
            hidden, scores, cache = read(tokens, np.array([len(behind)], np.int32))
            held = len(context) - 1
            assert int(np.argmax(scores[held - 1])) == context[-1], "the target says what transformers' does"
            last = np.asarray(hidden)[held - 1 : held]
            found = guess(np.array([context[-1]], np.int32), np.array([held], np.int32), last, cache)
            assert found.tolist()[: len(drafts)] == drafts
            right = next((at for at, token in enumerate(drafts) if answer[done + at] != token), len(drafts))
            accepted, done = accepted + right, done + right + 1
        assert done == len(answer)
    assert accepted > 15
