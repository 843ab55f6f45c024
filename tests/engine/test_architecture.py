"""The engine serves an architecture that is no Gemma, with all that it does for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache, gather, write
from langchain_gemma_jax.models.seams.recipe import Recipe
from tests.engine.faults_support import greedy
from tests.engine.tiny import CONTEXT, LADDERS, text

WIDTH, VOCABULARY = 16, 320


@dataclass(frozen=True)
class Averaging(Architecture):
    """A model whose next token follows from the newest one and the mean of all before it."""

    vocab_size: int = VOCABULARY  # type: ignore[assignment]  # fields in the place of properties
    width: int = WIDTH  # type: ignore[assignment]
    max_context: int = CONTEXT  # type: ignore[assignment]
    eos_ids: tuple[int, ...] = (1,)  # type: ignore[assignment]
    cache_layout: CacheLayout = (CacheLayer(kv_heads=1, head_dim=WIDTH),)  # type: ignore[assignment]

    def abstract(self, recipe: Recipe) -> Any:
        return {
            "embed": ArraySpec((VOCABULARY, WIDTH), recipe.dtype),
            "mix": ArraySpec((WIDTH, 2 * WIDTH), recipe.dtype),
            "layers": [],
        }

    def forward(self, params, recipe, tokens, start, count, cache: KVCache, keep):
        x = params["embed"][tokens]  # [row, token, width]
        positions = start[:, None] + jnp.arange(tokens.shape[1])[None, :]
        (layer,) = cache.layers
        written = write(layer, cache.whole, x[:, None], x[:, None], start, count)
        _, values, at = gather(written, cache.whole, start + count)
        seen = (at[:, None, :] <= positions[:, :, None]) & (at >= 0)[:, None, :]
        share = seen.astype(jnp.float32) / (positions[:, :, None] + 1).astype(jnp.float32)
        mean = jnp.einsum("rts,rsw->rtw", share, values[:, 0], precision="highest")
        both = jnp.concatenate([x, mean], axis=-1)
        hidden = jnp.tanh(jnp.einsum("rtc,wc->rtw", both, params["mix"], precision="highest"))
        kept = hidden if keep is None else jnp.take_along_axis(hidden, keep[:, None, None], axis=1)
        return kept, cache.with_layers((written,))

    def logits(self, params, recipe, hidden, real=None):
        return jnp.einsum("...w,vw->...v", hidden, params["embed"], precision="highest")

    def numbers_at_work(self, tokens, context):
        return tokens * (3 * WIDTH + context)


@pytest.fixture(scope="module")
def model(tiny_model) -> Model:
    draw = np.random.default_rng(7)
    params = {
        "embed": draw.normal(size=(VOCABULARY, WIDTH)).astype(np.float32),
        "mix": (0.3 * draw.normal(size=(WIDTH, 2 * WIDTH))).astype(np.float32),
    }
    placed = jax.device_put(params, jax.local_devices()[0]) | {"layers": []}
    return Model(Averaging(), placed, tiny_model.tokenizer, Recipe(dtype="float32"), "averaging")


def by_hand(model: Model, prompt: list[int], count: int) -> list[int]:
    """Return its answer, in numpy and without a cache."""
    embed, mix = np.asarray(model.params["embed"], np.float64), np.asarray(model.params["mix"], np.float64)
    said = list(prompt)
    for _ in range(count):
        seen = embed[said]
        scores = embed @ np.tanh(mix @ np.concatenate([seen[-1], seen.mean(axis=0)]))
        said.append(int(scores[: model.tokenizer.vocab_size].argmax()))  # what lies behind is no token
    return said[len(prompt) :]


@pytest.mark.long
def test_it_is_served_with_reuse_batching_and_guards(engine_of, model, rng, strict_transfers):
    engine = engine_of(ladders=LADDERS, guards="raise")
    served = engine.serve(model)
    prompts = [text(rng, length) for length in (3, 9, 17, 30)]
    together = [engine.submit(served, prompt, greedy(12), scope=str(n)) for n, prompt in enumerate(prompts)]
    answers = [list(one.result().ids) for one in together]
    assert answers == [by_hand(model, prompt, 12) for prompt in prompts]
    for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        longer = [*prompt, *answer, *text(rng, 5)]
        done = engine.submit(served, longer, greedy(8), scope=str(number)).result()
        assert list(done.ids) == by_hand(model, longer, 8)
        assert done.reused_tokens >= len(prompt) + len(answer) - 1
    report = engine.report()
    assert report.steps < 4 * 11 + 4 * 7, "rows shared steps"
    assert report.guard_trips == {}
    assert report.programs <= report.program_bound


def test_what_is_for_a_gemma_says_that_this_is_none(model):
    with pytest.raises(UnsupportedModelError, match="expected a Gemma, found the architecture Averaging"):
        _ = model.config
