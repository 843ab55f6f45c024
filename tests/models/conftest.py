"""Tiny models of every generation, as the official library's trees and under Hugging Face's names.

Both are written out here from what the libraries do, so that a mistake in the package's own tables
cannot hide behind the same mistake in its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import numpy as np
import pytest

from langchain_gemma_jax.models.checkpoint.hf_names import hf_naming
from langchain_gemma_jax.models.configuration.abstract import Layout
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.mapped.weight_files import WeightFiles
from langchain_gemma_jax.models.seams.tensor_source import TensorSource
from tests.models.gguf import make

WIDTH, HEADS, SIZE, FFW, VOCABULARY = 12, 4, 6, 20, 30


def _config(generation, layers, **changes):
    plain = ModelConfig(
        generation=generation,
        vocab_size=VOCABULARY,
        width=WIDTH,
        heads=HEADS,
        layers=layers,
        max_context=64,
        attention_scale=SIZE**-0.5,
    )
    return plain.replace(**changes)


def _layer(window=None, **changes):
    values = {"kv_heads": 2, "head_dim": SIZE, "ffw_width": FFW, "rope": Rope(10_000.0), "window": window} | changes
    return LayerConfig(**values)


_SANDWICH = {"post_norms": True}
_GEMMA3 = _SANDWICH | {"qk_norm": True}
_GEMMA4 = _GEMMA3 | {"v_norm": True, "layer_scale": True, "norm_offset": 0.0, "attention_scale": 1.0}

TINY: Mapping[str, ModelConfig] = {
    "gemma, one KV head": _config("gemma", (_layer(kv_heads=1),) * 2),
    "gemma, all KV heads": _config("gemma", (_layer(kv_heads=HEADS),) * 2),
    "gemma2": _config("gemma2", (_layer(window=8), _layer()), **_SANDWICH),
    "gemma3": _config("gemma3", (*(_layer(window=8),) * 5, _layer(rope=Rope(1e6, position_scale=8.0))), **_GEMMA3),
    "gemma4, per-layer inputs and shared KV": _config(
        "gemma4",
        (
            _layer(window=8),
            _layer(head_dim=2 * SIZE),
            _layer(window=8, kv_from=0, ffw_width=2 * FFW),
            _layer(head_dim=2 * SIZE, kv_from=1, ffw_width=2 * FFW),
        ),
        per_layer_input=PerLayerInputConfig(width=5, vocab_size=VOCABULARY),
        **_GEMMA4,
    ),
    "gemma4, the key as value": _config(
        "gemma4", (_layer(window=8), _layer(kv_heads=1, head_dim=2 * SIZE, k_eq_v=True)), **_GEMMA4
    ),
    "gemma4, experts": _config(
        "gemma4",
        (_layer(window=8), _layer(kv_heads=1, head_dim=2 * SIZE, k_eq_v=True)),
        moe=MoeConfig(experts=3, experts_per_token=2, ffw_width=7),
        **_GEMMA4,
    ),
}


@pytest.fixture(params=TINY)
def tiny(request) -> ModelConfig:
    """A tiny model, of each kind in turn."""
    return TINY[request.param]


@pytest.fixture(scope="session")
def tiny_models() -> Mapping[str, ModelConfig]:
    return TINY


@pytest.fixture(scope="session")
def gemma3() -> ModelConfig:
    return TINY["gemma3"]


@pytest.fixture(scope="session")
def official_tree() -> Callable[..., dict]:
    """``official_tree(config, dtype=np.float32, gate_out_first=True, seed=0)``: nested, as the library makes it."""
    return _official_tree


@pytest.fixture
def put() -> Callable[..., dict]:
    """``put(source or tensors, naming, config, layout=None)``: what ``place`` makes of it in float32, in numpy."""
    return _put


@pytest.fixture
def put_by_hf_names() -> Callable[..., dict]:
    """``put_by_hf_names(config, tree, layout=None)``: the same, by way of a Hugging Face checkpoint's names."""

    def put_by_hf_names(config, tree, layout=None):
        tensors = _hf_tensors(config, tree)
        return _put(tensors, hf_naming(config, tensors.keys(), "memory"), config, layout)

    return put_by_hf_names


class Tensors(TensorSource):
    """The smallest source: arrays by name, in memory."""

    location = "memory"

    def __init__(self, tensors):
        self.tensors = tensors

    def names(self):
        return self.tensors.keys()

    def shape(self, name):
        return self.tensors[name].shape

    def dtype(self, name):
        return self.tensors[name].dtype.name

    def read(self, name):
        return self.tensors[name]

    def close(self):
        pass


def _put(source, naming, config, layout=None):
    source = Tensors(source) if isinstance(source, dict) else source
    params = place(source, naming, config, "float32", layout or Layout(), jax.devices("cpu")[0])
    return jax.tree.map(np.asarray, params)


def _official_tree(config, dtype=np.float32, *, gate_out_first=True, seed=0):  # noqa: C901
    random = np.random.default_rng(seed)

    def array(*shape):
        return random.normal(size=shape).astype(dtype)

    def scale(size):
        return {"scale": array(size)}

    width, is_gemma4 = config.width, config.generation == "gemma4"
    tree = {"embedder": {"input_embedding": array(config.vocab_size, width)}, "final_norm": scale(width)}
    if ple := config.per_layer_input:
        tree["embedder"] |= {
            "per_layer_embeddings": array(ple.vocab_size, len(config.layers), ple.width),
            "per_layer_model_projection": {"w": array(width, len(config.layers), ple.width)},
            "per_layer_projection_norm": scale(ple.width),
        }
    for index, layer in enumerate(config.layers):
        size, ffw, kv_heads = layer.head_dim, layer.ffw_width, layer.kv_heads
        attention = {"attn_vec_einsum": {"w": array(config.heads, size, width)}}
        if kv_heads == config.heads and not is_gemma4:
            attention["qkv_einsum"] = {"w": array(3, config.heads, width, size)}
        else:
            attention["q_einsum"] = {"w": array(config.heads, width, size)}
            name, copies = ("k_einsum", ()) if layer.k_eq_v else ("kv_einsum", (2,))
            attention[name] = {"w": array(*copies, kv_heads, width, size)}
        if config.qk_norm:
            for name in ("query_norm", "key_norm"):
                attention[name if is_gemma4 else f"_{name}"] = scale(size)
        gate = (2, ffw, width) if gate_out_first else (2, width, ffw)
        dense = {"gating_einsum": array(*gate), "linear": array(ffw, width)}
        block = {"attn": attention, "pre_attention_norm": scale(width), "pre_ffw_norm": scale(width), "mlp": dense}
        if config.post_norms:
            block |= {"post_attention_norm": scale(width), "post_ffw_norm": scale(width)}
        if moe := config.moe:
            block |= {f"{name}_norm": scale(width) for name in ("pre_ffw2", "post_ffw1", "post_ffw2")}
            block["mlp2"] = dense
            block["mlp"] = {
                "router_logits": {"w": array(width, moe.experts)},
                "router_scale": array(width),
                "per_expert_scale": array(moe.experts),
                "gating_einsum": {"w": array(moe.experts, 2, moe.ffw_width, width)},
                "linear": {"w": array(moe.experts, moe.ffw_width, width)},
            }
        if config.per_layer_input:
            block |= {
                "per_layer_input_gate": {"w": array(width, ple.width)},
                "per_layer_projection": {"w": array(ple.width, width)},
                "post_per_layer_input_norm": scale(width),
            }
        if config.layer_scale:
            block["skip_scale"] = array(1)
        tree[f"layer_{index}"] = block
    return tree


def _hf_tensors(config, tree):
    """By the meaning of each axis, one head, expert or layer at a time."""
    out = {
        "model.embed_tokens.weight": tree["embedder"]["input_embedding"],
        "model.norm.weight": tree["final_norm"]["scale"],
    }
    if config.per_layer_input:
        embedder = tree["embedder"]
        each = range(len(config.layers))
        out |= {
            "model.embed_tokens_per_layer.weight": np.concatenate(
                [embedder["per_layer_embeddings"][:, i] for i in each], axis=1
            ),
            "model.per_layer_model_projection.weight": np.concatenate(
                [embedder["per_layer_model_projection"]["w"][:, i].T for i in each]
            ),
            "model.per_layer_projection_norm.weight": embedder["per_layer_projection_norm"]["scale"],
        }
    for index, layer in enumerate(config.layers):
        named = _hf_layer(config, layer, tree[f"layer_{index}"])
        out |= {f"model.layers.{index}.{name}": array for name, array in named.items()}
    return out


def _hf_layer(config, layer, block):  # noqa: C901
    def heads(array):  # [heads, width, size]: each head's rows, one head after the other
        return np.concatenate([head.T for head in array])

    attention, out = block["attn"], {}
    if "qkv_einsum" in attention:
        q, k, v = attention["qkv_einsum"]["w"]
    else:
        q = attention["q_einsum"]["w"]
        k, v = attention["kv_einsum"]["w"] if "kv_einsum" in attention else (attention["k_einsum"]["w"], None)
    out["self_attn.q_proj.weight"] = heads(q)
    out["self_attn.k_proj.weight"] = heads(k)
    if v is not None:
        out["self_attn.v_proj.weight"] = heads(v)
    out["self_attn.o_proj.weight"] = np.concatenate([head.T for head in attention["attn_vec_einsum"]["w"]], axis=1)
    for theirs, ours in (("query_norm", "q_norm"), ("key_norm", "k_norm")):
        for name in (theirs, f"_{theirs}"):
            if name in attention:
                out[f"self_attn.{ours}.weight"] = attention[name]["scale"]

    dense = block["mlp2"] if config.moe else block["mlp"]
    out_first = dense["gating_einsum"].shape[1:] == (layer.ffw_width, config.width)
    for name, half in zip(("gate", "up"), dense["gating_einsum"], strict=True):
        out[f"mlp.{name}_proj.weight"] = half if out_first else half.T
    out["mlp.down_proj.weight"] = dense["linear"].T

    norms = {"pre_attention_norm": "input_layernorm"}
    if not config.post_norms:
        norms |= {"pre_ffw_norm": "post_attention_layernorm"}
    else:
        norms |= {
            "post_attention_norm": "post_attention_layernorm",
            "pre_ffw_norm": "pre_feedforward_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        }
    if config.moe:
        moe = block["mlp"]
        norms |= {
            "pre_ffw2_norm": "pre_feedforward_layernorm",
            "post_ffw2_norm": "post_feedforward_layernorm_1",
            "pre_ffw_norm": "pre_feedforward_layernorm_2",
            "post_ffw1_norm": "post_feedforward_layernorm_2",
        }
        out |= {
            "router.proj.weight": moe["router_logits"]["w"].T,
            "router.scale": moe["router_scale"],
            "router.per_expert_scale": moe["per_expert_scale"],
            "experts.gate_up_proj": np.stack([np.concatenate([*expert]) for expert in moe["gating_einsum"]["w"]]),
            "experts.down_proj": np.stack([expert.T for expert in moe["linear"]["w"]]),
        }
    if config.per_layer_input:
        norms |= {"post_per_layer_input_norm": "post_per_layer_input_norm"}
        out["per_layer_input_gate.weight"] = block["per_layer_input_gate"]["w"].T
        out["per_layer_projection.weight"] = block["per_layer_projection"]["w"].T
    if config.layer_scale:
        out["layer_scalar"] = block["skip_scale"]
    return out | {f"{ours}.weight": block[theirs]["scale"] for theirs, ours in norms.items()}


@pytest.fixture
def weight_files(tmp_path):
    return WeightFiles(tmp_path / "weights", least=0)


@pytest.fixture
def packed_file(tmp_path):
    path = tmp_path / "model.gguf"
    make.write(path, make.CONFIGS["gemma3"], lambda _: "Q8_0", tokenizer=make.small_tokenizer())
    return path
