"""The simplest way to let a model answer: greedy, a few prompts at a time, with the package's own forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers

from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import KVCache, allocate
from langchain_gemma_jax.models.seams.params import Params
from training.configs import EOS

_CHUNK = 256  # prompts are read so many tokens at a time, so that few programs are compiled
_LEAST_CAPACITY = 1024
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
        lengths = np.asarray([len(prompt) for prompt in padded], np.int32)
        longest = -(-int(lengths.max()) // _CHUNK) * _CHUNK
        tokens = np.zeros((self._rows, longest), np.int32)
        for row, prompt in enumerate(padded):
            tokens[row, : len(prompt)] = prompt
        capacity = max(_LEAST_CAPACITY, 1 << (longest + self._most - 1).bit_length())
        cache = allocate(self._config.cache_layout, self._rows, capacity, "float32")
        last = np.zeros(self._rows, np.int32)
        for start in range(0, longest, _CHUNK):
            count = np.clip(lengths - start, 0, _CHUNK)
            chunk = tokens[:, start : start + _CHUNK]
            drawn, cache = _read(self._params, self._config, chunk, np.minimum(lengths, start), count, cache)
            last = np.where(count > 0, drawn, last)
        return self._go_on(last, lengths, cache)[: len(prompts)]

    def _go_on(self, last: np.ndarray, lengths: np.ndarray, cache: KVCache) -> list[list[int]]:
        """What follows the token drawn ``last``, that token included, a list for each row."""
        out: list[list[int]] = [[] for _ in last]
        ended, one = np.zeros(self._rows, bool), np.ones(self._rows, np.int32)
        for count in range(self._most):
            for row in np.flatnonzero(~ended).tolist():
                out[row].append(int(last[row]))
            ended |= np.isin(last, EOS)
            if ended.all():
                break
            drawn, cache = _read(self._params, self._config, last[:, None], lengths + np.int32(count), one, cache)
            last = np.asarray(drawn)
        return out


@partial(jax.jit, static_argnums=1, donate_argnums=5)
def _read(
    params: Params, config: ModelConfig, tokens: jax.Array, start: jax.Array, count: jax.Array, cache: KVCache
) -> tuple[jax.Array, KVCache]:
    hidden, cache = forward(params, config, _RECIPE, tokens, start, count, cache, keep=jnp.maximum(count - 1, 0))
    return jnp.argmax(logits(params, config, _RECIPE, hidden[:, 0]), axis=-1).astype(jnp.int32), cache
