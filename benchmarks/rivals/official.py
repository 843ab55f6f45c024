"""The official ``gemma`` library as an engine: its module and its cache, without the Python around its sampler.

One program reads the prompt and one decodes in a loop on the device, as its sampler does; both are
given the cache to write in. A dispatch a token, which suits our programs, was measured up to three times slower.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gemma
import jax
import jax.numpy as jnp
import numpy as np
from gemma import gm

from benchmarks.running.serve import Answer, Job, serve_engine
from benchmarks.work.workload import CAPACITY, DECODE, PROMPT
from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors


class Official:
    """``gm.nn.Gemma3_270M`` with weights in one dtype and a cache in the same."""

    prompt_lengths: Sequence[int] = (PROMPT,)  # another length is another compilation

    def __init__(self, job: Job) -> None:
        self._dtype = jnp.dtype(job.dtype)
        self._model = gm.nn.Gemma3_270M(dtype=self._dtype)
        self._params = {"params": official_tree(job.checkpoint, self._model.config)}
        self.forget()
        token = jnp.zeros((1,), jnp.int32)
        began = time.perf_counter()
        read = jax.jit(self._read, donate_argnums=1)
        self._read_compiled = read.lower(self._params, self._cache, jnp.zeros((1, PROMPT), jnp.int32)).compile()
        loop = jax.jit(self._loop, donate_argnums=1)
        self._loop_compiled = loop.lower(self._params, self._cache, token, token, jnp.int32(0)).compile()
        self.facts: Answer = {
            "version": f"gemma {gemma.__version__}, jax {jax.__version__}",
            "compile": time.perf_counter() - began,
        }

    def _read(self, params: object, cache: object, tokens: jax.Array) -> tuple[jax.Array, jax.Array, object]:
        length = tokens.shape[1]
        sees = jnp.pad(jnp.tril(jnp.ones((length, length), bool)), ((0, 0), (0, CAPACITY - length)))[None]
        return self._apply(params, cache, tokens, jnp.arange(length)[None], sees)

    def _loop(
        self, params: object, cache: object, token: jax.Array, position: jax.Array, count: jax.Array
    ) -> tuple[jax.Array, jax.Array, object, jax.Array]:
        def step(index: jax.Array, state: tuple[Any, ...]) -> tuple[Any, ...]:
            token, position, cache, found = state
            sees = jnp.arange(CAPACITY)[None, None] <= position[:, None, None]
            token, position, cache = self._apply(params, cache, token[:, None], position[:, None], sees)
            return token, position, cache, found.at[index].set(token[0])

        return jax.lax.fori_loop(0, count, step, (token, position, cache, jnp.zeros((DECODE,), jnp.int32)))

    def _apply(
        self, params: object, cache: object, tokens: jax.Array, positions: jax.Array, sees: jax.Array
    ) -> tuple[jax.Array, jax.Array, object]:
        """The likeliest next token, its position, and the new cache."""
        out = self._model.apply(
            params, tokens, cache=cache, positions=positions, attention_mask=sees, return_last_only=True
        )
        return jnp.argmax(out.logits, axis=-1).astype(jnp.int32), positions[:, -1] + 1, out.cache

    def forget(self) -> None:
        self._cache = self._model.init_cache(batch_size=1, dtype=self._dtype, cache_length=CAPACITY)
        jax.block_until_ready(self._cache)

    def read(self, prompt: Sequence[int]) -> int:
        tokens = jnp.array([prompt], jnp.int32)
        self._token, self._position, self._cache = self._read_compiled(self._params, self._cache, tokens)
        return int(self._token[0])

    def decode(self, count: int) -> list[int]:
        self._token, self._position, self._cache, found = self._loop_compiled(
            self._params, self._cache, self._token, self._position, jnp.int32(count)
        )
        return np.asarray(found)[:count].tolist()


def official_tree(checkpoint: Path, config: gm.nn.config.TransformerConfig) -> Mapping[str, object]:
    """The library's parameter tree with a Hugging Face checkpoint's weights."""
    with open_safetensors(checkpoint) as stored:

        def array(name: str) -> jax.Array:
            return jnp.array(stored.read(f"model.{name}.weight"))

        def layer(index: int) -> Mapping[str, object]:
            def get(name: str) -> jax.Array:
                return array(f"layers.{index}.{name}")

            def heads(name: str) -> jax.Array:  # [head, in, head_dim] of [head * head_dim, in]
                return get(name).reshape(-1, config.head_dim, config.embed_dim).swapaxes(1, 2)

            return {
                "attn": {
                    "q_einsum": {"w": heads("self_attn.q_proj")},
                    "kv_einsum": {"w": jnp.stack([heads("self_attn.k_proj"), heads("self_attn.v_proj")])},
                    "attn_vec_einsum": {
                        "w": get("self_attn.o_proj").T.reshape(config.num_heads, config.head_dim, config.embed_dim)
                    },
                    "_query_norm": {"scale": get("self_attn.q_norm")},
                    "_key_norm": {"scale": get("self_attn.k_norm")},
                },
                "mlp": {
                    "gating_einsum": jnp.stack([get("mlp.gate_proj"), get("mlp.up_proj")]),
                    "linear": get("mlp.down_proj").T,
                },
                "pre_attention_norm": {"scale": get("input_layernorm")},
                "post_attention_norm": {"scale": get("post_attention_layernorm")},
                "pre_ffw_norm": {"scale": get("pre_feedforward_layernorm")},
                "post_ffw_norm": {"scale": get("post_feedforward_layernorm")},
            }

        return {
            "embedder": {"input_embedding": array("embed_tokens")},
            **{f"layer_{index}": layer(index) for index in range(config.num_layers)},
            "final_norm": {"scale": array("norm")},
        }


if __name__ == "__main__":
    serve_engine(Official)
