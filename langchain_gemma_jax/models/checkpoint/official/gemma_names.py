"""The arrays of the official library's tree that make up each of ours, and their layouts.

In the library's shapes D is the width, F the feed-forward's, N the heads, K the KV heads, H a head's
size, L the layers, P the per-layer input's width, E the experts and V the vocabulary:

==================================  ==============================================================
embedder/input_embedding            [V, D], the output matrix too
embedder/per_layer_embeddings       [V, L, P]; only Gemma 4 E2B and E4B have per_layer names
embedder/per_layer_model_projection [D, L, P]
embedder/per_layer_projection_norm  /scale [P]
final_norm                          /scale [D]
layer_i/pre_attention_norm          /scale [D]; post_attention_norm, pre_ffw_norm, post_ffw_norm too
layer_i/attn/q_einsum               [N, D, H]
layer_i/attn/kv_einsum              [2, K, D, H]; layers that share another's KV keep an unused one
layer_i/attn/k_einsum               [K, D, H] in its place where the value is the key
layer_i/attn/qkv_einsum             [3, N, D, H] in place of q and kv where K = N, before Gemma 4
layer_i/attn/attn_vec_einsum        [N, H, D]
layer_i/attn/_query_norm            /scale [H], and _key_norm: Gemma 3; no underscore: Gemma 4
layer_i/mlp/gating_einsum           [2, F, D]; [2, D, F] in Gemma 1 and Gemma 2 2B
layer_i/mlp/linear                  [F, D]
layer_i/per_layer_input_gate        [D, P]
layer_i/per_layer_projection        [P, D]
layer_i/post_per_layer_input_norm   /scale [D]
layer_i/skip_scale                  [1], since Gemma 4
==================================  ==============================================================

A layer with experts has them under ``mlp``, and its dense feed-forward under ``mlp2`` beside it:

    post_ffw_norm(post_ffw1_norm(mlp(pre_ffw_norm(x))) + post_ffw2_norm(mlp2(pre_ffw2_norm(x))))

with ``mlp/router_logits`` [D, E], ``router_scale`` [D], ``per_expert_scale`` [E], ``gating_einsum``
[E, 2, F, D] and ``linear`` [E, F, D].
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.errors import ConfigError
from langchain_gemma_jax.models.configuration.abstract import Path
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
)
from langchain_gemma_jax.models.seams.tensor_source import Array, Part, as_number


@dataclass(frozen=True)
class GemmaNaming:
    """A ``Naming`` for the names that ``gemma_tree.text_tower`` gives."""

    gate_out_first: bool = True  # gating_einsum is [2, F, D]; False: [2, D, F]

    def __call__(self, config: ModelConfig, path: Path) -> list[Part]:
        match path:
            case ("layers", int(index), str(key)):
                parts = self._layer(config, index)
            case (str(key),):
                parts = _model(config)
            case _:
                parts, key = {}, ""
        if key not in parts:
            raise ConfigError(
                f"A tree of Google's library has no place for {'/'.join(map(str, path))}, which the configuration "
                f"({config.generation}) asks for."
            )
        return parts[key]

    def _layer(self, config: ModelConfig, index: int) -> dict[str, list[Part]]:
        layer, at = config.layers[index], f"layer_{index}"
        parts = _attention(config, layer, f"{at}/attn")
        parts |= _norms(
            config.width,
            attn_norm=f"{at}/pre_attention_norm",
            post_attn_norm=f"{at}/post_attention_norm",
            ffw_norm=f"{at}/pre_ffw2_norm" if config.moe else f"{at}/pre_ffw_norm",
            post_ffw_norm=f"{at}/post_ffw_norm",
        )
        parts |= self._dense(config.width, layer.ffw_width, f"{at}/mlp2" if config.moe else f"{at}/mlp")
        if config.moe:
            parts |= _experts(config.width, config.moe, at)
        if config.per_layer_input:
            parts |= _gate_of_per_layer_input(config.width, config.per_layer_input, at)
        if config.layer_scale:
            parts["scale"] = [Part(f"{at}/skip_scale", (1,), as_number)]
        return parts

    def _dense(self, width: int, ffw: int, at: str) -> dict[str, list[Part]]:
        gate = f"{at}/gating_einsum"
        return {
            "gate_up": [
                Part(gate, (2, ffw, width), _rows) if self.gate_out_first else Part(gate, (2, width, ffw), _turned_rows)
            ],
            "down": [Part(f"{at}/linear", (ffw, width), _turned)],
        }


def _model(config: ModelConfig) -> dict[str, list[Part]]:
    width, layers = config.width, len(config.layers)
    parts = {"embed": [Part("embedder/input_embedding", (config.vocab_size, width), by_rows=True)]}
    parts |= _norms(width, final_norm="final_norm")
    if (ple := config.per_layer_input) is not None:
        table, into = "embedder/per_layer_embeddings", "embedder/per_layer_model_projection"
        parts |= {
            "ple_embed": [Part(table, (ple.vocab_size, layers, ple.width), _columns, by_rows=True)],
            "ple_in": [Part(into, (width, layers, ple.width), _turned_columns)],
        }
        parts |= _norms(ple.width, ple_in_norm="embedder/per_layer_projection_norm")
    return parts


def _attention(config: ModelConfig, layer: LayerConfig, at: str) -> dict[str, list[Part]]:
    width, heads, kv_heads, size = config.width, config.heads, layer.kv_heads, layer.head_dim
    is_gemma4 = config.generation == "gemma4"
    q = Part(f"{at}/q_einsum", (heads, width, size), _turned_rows)
    if not layer.owns_kv:
        qkv = [q]
    elif layer.k_eq_v:
        qkv = [q, Part(f"{at}/k_einsum", (kv_heads, width, size), _turned_rows)]
    elif heads == kv_heads and not is_gemma4:
        qkv = [Part(f"{at}/qkv_einsum", (3, heads, width, size), _turned_rows)]
    else:
        qkv = [q, Part(f"{at}/kv_einsum", (2, kv_heads, width, size), _turned_rows)]
    underscore = "" if is_gemma4 else "_"
    return {
        "qkv": qkv,
        "attn_out": [Part(f"{at}/attn_vec_einsum", (heads, size, width), _rows_turned)],
        **_norms(size, q_norm=f"{at}/{underscore}query_norm", k_norm=f"{at}/{underscore}key_norm"),
    }


def _experts(width: int, moe: MoeConfig, at: str) -> dict[str, list[Part]]:
    experts, ffw, mlp = moe.experts, moe.ffw_width, f"{at}/mlp"
    return {
        "router": [Part(f"{mlp}/router_logits", (width, experts), _turned)],
        "router_scale": [Part(f"{mlp}/router_scale", (width,))],
        "expert_scale": [Part(f"{mlp}/per_expert_scale", (experts,))],
        "experts_gate_up": [Part(f"{mlp}/gating_einsum", (experts, 2, ffw, width), _rows_of_each)],
        "experts_down": [Part(f"{mlp}/linear", (experts, ffw, width), _turned)],
        **_norms(
            width,
            dense_post_norm=f"{at}/post_ffw2_norm",
            moe_norm=f"{at}/pre_ffw_norm",
            moe_post_norm=f"{at}/post_ffw1_norm",
        ),
    }


def _gate_of_per_layer_input(width: int, ple: PerLayerInputConfig, at: str) -> dict[str, list[Part]]:
    return {
        "ple_gate": [Part(f"{at}/per_layer_input_gate", (width, ple.width), _turned)],
        "ple_out": [Part(f"{at}/per_layer_projection", (ple.width, width), _turned)],
        **_norms(width, ple_norm=f"{at}/post_per_layer_input_norm"),
    }


def _norms(size: int, **names: str) -> dict[str, list[Part]]:
    return {key: [Part(f"{name}/scale", (size,))] for key, name in names.items()}


# Functions from a stored array to (outputs, inputs). "Turned" swaps the last two axes; "rows" flattens the axes before
# the last into one, and "columns" those after the first.


def _turned(stored: Array) -> Array:
    return stored.swapaxes(-1, -2)


def _rows(stored: Array) -> Array:
    return stored.reshape(-1, stored.shape[-1])


def _columns(stored: Array) -> Array:
    return stored.reshape(stored.shape[0], -1)


def _turned_rows(stored: Array) -> Array:
    return _rows(_turned(stored))


def _rows_turned(stored: Array) -> Array:
    return _turned(_rows(stored))


def _turned_columns(stored: Array) -> Array:
    return _turned(_columns(stored))


def _rows_of_each(stored: Array) -> Array:
    return stored.reshape(stored.shape[0], -1, stored.shape[-1])
