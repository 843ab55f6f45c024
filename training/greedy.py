"""The simplest way to let a model answer: greedy, a few prompts at a time, with the package's own forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers

from langchain_gemma_jax.models.config import ModelConfig
from langchain_gemma_jax.models.forward import forward, logits
from langchain_gemma_jax.models.kv_cache import KVCache, allocate
from langchain_gemma_jax.models.model import Params
from langchain_gemma_jax.models.recipes import Recipe
from training.configs import EOS

_ROUND = 256  # prompts are padded to a multiple of it, so that few programs are compiled
_RECIPE = Recipe("float32")


class Greedy:
    """Answers prompts that are written in the dialect, control tokens and all."""

    def __init__(self, params: Params, config: ModelConfig, tokenizer: tokenizers.Tokenizer, most: int = 192) -> None:
        self._params, self._config, self._tokenizer, self._most = params, config, tokenizer, most
        self._rows = 8 if jax.default_backend() == "cpu" else 64

    def write(self, prompts: Sequence[str]) -> list[str]:
        """What the model writes after each, up to and with the token that ends it."""
        ids = [self._tokenizer.encode(prompt, add_special_tokens=False).ids for prompt in prompts]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        written: dict[int, str] = {}
        for first in range(0, len(order), self._rows):
            group = order[first : first + self._rows]
            rows = self._group([ids[index] for index in group])
            written |= {
                index: self._tokenizer.decode(row, skip_special_tokens=False)
                for index, row in zip(group, rows, strict=True)
            }
        return [written[index] for index in range(len(prompts))]

    def _group(self, prompts: list[list[int]]) -> list[list[int]]:
        padded = prompts + [prompts[0]] * (self._rows - len(prompts))
        longest = -(-max(map(len, padded)) // _ROUND) * _ROUND
        tokens = np.zeros((self._rows, longest), np.int32)
        for row, prompt in enumerate(padded):
            tokens[row, : len(prompt)] = prompt
        lengths = np.asarray([len(prompt) for prompt in padded], np.int32)
        cache = allocate(self._config, self._rows, longest + self._most, "float32")
        last, cache = _read(self._params, self._config, tokens, np.zeros(self._rows, np.int32), lengths, cache)
        out: list[list[int]] = [[] for _ in padded]
        ended = np.zeros(self._rows, bool)
        for count in range(self._most):
            drawn = np.asarray(last)
            for alive in np.flatnonzero(~ended).tolist():
                out[alive].append(int(drawn[alive]))
            ended |= np.isin(drawn, EOS)
            if ended.all():
                break
            ones = np.ones(self._rows, np.int32)
            last, cache = _read(self._params, self._config, drawn[:, None], lengths + count, ones, cache)
        return out[: len(prompts)]


@partial(jax.jit, static_argnums=1, donate_argnums=5)
def _read(
    params: Params, config: ModelConfig, tokens: jax.Array, start: jax.Array, count: jax.Array, cache: KVCache
) -> tuple[jax.Array, KVCache]:
    hidden, cache = forward(params, config, _RECIPE, tokens, start, count, cache, keep=count - 1)
    return jnp.argmax(logits(params, config, _RECIPE, hidden[:, 0]), axis=-1).astype(jnp.int32), cache
