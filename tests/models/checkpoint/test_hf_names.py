from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.hf_names import hf_naming
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)

# What transformers saves for tiny models of every kind: make_reference_names.py beside this file.
REFERENCE = json.loads(Path(__file__).with_name("reference_names.json").read_text())

LOCAL = LayerConfig(kv_heads=2, head_dim=8, ffw_width=24, rope=Rope(1e4), window=8)
GLOBAL = replace(LOCAL, window=None)
WIDE = replace(GLOBAL, head_dim=12)  # Gemma 4's global layers

GEMMA = ModelConfig(
    generation="gemma",
    vocab_size=48,
    width=16,
    heads=4,
    layers=(GLOBAL,) * 3,
    max_context=64,
    attention_scale=1.0,
)
GEMMA_2 = GEMMA.replace(generation="gemma2", post_norms=True)
GEMMA_3 = GEMMA_2.replace(generation="gemma3", qk_norm=True)
GEMMA_4 = GEMMA_3.replace(generation="gemma4", layer_scale=True, norm_offset=0.0, layers=(LOCAL, LOCAL, WIDE))
PLE = PerLayerInputConfig(width=4, vocab_size=32)

CONFIGS = {
    "gemma": GEMMA,
    "gemma2": GEMMA_2,
    "gemma3_text": GEMMA_3,
    "gemma3": GEMMA_3,
    "gemma4_text": GEMMA_4,
    "gemma4_text_untied": GEMMA_4.replace(tied_head=False),
    "gemma4_shared_kv": GEMMA_4.replace(
        per_layer_input=PLE,
        layers=(LOCAL, WIDE, replace(LOCAL, kv_from=0, ffw_width=48), replace(WIDE, kv_from=1, ffw_width=48)),
    ),
    "gemma4_moe": GEMMA_4.replace(
        moe=MoeConfig(experts=4, experts_per_token=2, ffw_width=6),
        layers=(LOCAL, LOCAL, replace(WIDE, kv_heads=1, k_eq_v=True)),
    ),
    "gemma4": GEMMA_4.replace(per_layer_input=PLE),
}


def stored_names(kind):
    return list(REFERENCE[kind]["tensors"])


@pytest.mark.parametrize("kind", CONFIGS)
class TestAgainstTransformers:
    def test_every_name_and_shape_is_as_saved(self, kind):
        config, tensors = CONFIGS[kind], REFERENCE[kind]["tensors"]
        naming = hf_naming(config, tensors.keys(), "here")
        for path, _ in walk(abstract(config)):
            for part in naming(config, path):
                assert list(part.shape) == tensors[part.name], part.name

    def test_the_blocks_fill_their_array(self, kind):
        config = CONFIGS[kind]
        naming = hf_naming(config, stored_names(kind), "here")
        for path, spec in walk(abstract(config)):
            blocks = [part.arrange(np.zeros(part.shape)) for part in naming(config, path)]
            whole = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=-2)
            assert whole.shape == spec.shape, path

    def test_no_stored_tensor_is_used_twice_or_left_over(self, kind):
        config = CONFIGS[kind]
        naming = hf_naming(config, stored_names(kind), "here")
        used = [part.name for path, _ in walk(abstract(config)) for part in naming(config, path)]
        assert len(used) == len(set(used))
        left = set(stored_names(kind)) - set(used)
        assert all("vision" in name or "multi_modal" in name for name in left)


def names_of(config, path, kind):
    return [part.name for part in hf_naming(config, stored_names(kind), "here")(config, path)]


def test_the_norm_before_feed_forward_has_two_names():
    """In Gemma 1, post_attention_layernorm is that norm; later it is the one after attention."""
    at = ("layers", 1, "ffw_norm")
    assert names_of(GEMMA, at, "gemma") == ["model.layers.1.post_attention_layernorm.weight"]
    assert names_of(GEMMA_2, at, "gemma2") == ["model.layers.1.pre_feedforward_layernorm.weight"]


def test_the_order_of_blocks():
    qkv = names_of(GEMMA, ("layers", 0, "qkv"), "gemma")
    assert [name.split(".")[-2] for name in qkv] == ["q_proj", "k_proj", "v_proj"]
    gate_up = names_of(GEMMA, ("layers", 0, "gate_up"), "gemma")
    assert [name.split(".")[-2] for name in gate_up] == ["gate_proj", "up_proj"]


@pytest.mark.parametrize("prefix", ["", "model.", "language_model.model.", "model.language_model."])
def test_every_place_of_the_text_tower(prefix):
    names = [name.replace("model.", prefix, 1) for name in stored_names("gemma2")]
    naming = hf_naming(GEMMA_2, names, "here")
    assert naming(GEMMA_2, ("final_norm",))[0].name == f"{prefix}norm.weight"


@pytest.mark.parametrize("head", ["lm_head.weight", "language_model.lm_head.weight"])
def test_the_output_matrix(head):
    names = [*stored_names("gemma2"), head]
    hf_naming(GEMMA_2, names, "here")  # tied: the copy of the embedding is not needed
    untied = GEMMA_2.replace(tied_head=False)
    (part,) = hf_naming(untied, names, "here")(untied, ("head",))
    assert (part.name, part.shape) == (head, (48, 16))


def test_two_output_matrices_are_one_too_many():
    names = [*stored_names("gemma2"), "lm_head.weight", "language_model.lm_head.weight"]
    with pytest.raises(TensorMismatchError, match=r"found also 'language_model\.lm_head\.weight'"):
        hf_naming(GEMMA_2.replace(tied_head=False), names, "here")


@pytest.mark.parametrize(
    "extra",
    [
        "vision_tower.vision_model.post_layernorm.weight",
        "model.vision_tower.patch_embedder.input_proj.weight",
        "model.embed_vision.embedding_projection.weight",
        "model.embed_audio.embedding_projection.weight",
        "model.audio_tower.layers.0.norm_out.weight",
        "multi_modal_projector.mm_input_projection_weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.rotary_emb.inv_freq",
        "model.rotary_emb.full_attention_inv_freq",
    ],
)
def test_what_is_skipped(extra):
    hf_naming(GEMMA_2, [*stored_names("gemma2"), extra], "here")


@pytest.mark.parametrize(
    "extra",
    [
        "model.layers.3.input_layernorm.weight",  # a layer more than the configuration has
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.self_attn.q_norm.weight",  # Gemma 3's, in a Gemma 2
        "model.layers.0.self_attn.q_proj.weight_scale",
        "model.layers.0.self_attn.q_proj.lora_A.weight",
        "model.layers.0.self_attn.k_norm.weight",
        "model.vision_towers",
        "model.my_audio_tower.weight",
        "score.weight",
        "v_head.summary.bias",
        "embed_tokens.weight",  # a second text tower
        "model.rotary_emb.inv_freq.weight",
    ],
)
def test_what_nobody_asked_for_is_an_error(extra):
    with pytest.raises(TensorMismatchError) as caught:
        hf_naming(GEMMA_2, [*stored_names("gemma2"), extra], "the/folder")
    assert caught.value.path == "the/folder"
    assert caught.value.found == f"also {extra!r}"


def test_kv_that_is_published_for_layers_without_their_own_is_skipped():
    config, names = CONFIGS["gemma4_shared_kv"], stored_names("gemma4_shared_kv")
    extra = [f"model.layers.2.self_attn.{name}.weight" for name in ("k_proj", "v_proj", "k_norm")]
    assert not set(extra) & set(names)
    hf_naming(config, [*names, *extra], "here")
    with pytest.raises(TensorMismatchError, match="q_proj_2"):
        hf_naming(config, [*names, "model.layers.2.self_attn.q_proj_2.weight"], "here")


def test_a_tied_checkpoint_is_no_untied_model():
    """The output matrix is asked for by name; that it is missing is found when it is placed."""
    untied = GEMMA.replace(tied_head=False)
    (part,) = hf_naming(untied, stored_names("gemma"), "here")(untied, ("head",))
    assert part.name not in stored_names("gemma")


def test_no_embedding_at_all():
    with pytest.raises(
        TensorMismatchError, match=r"expected a tensor model\.embed_tokens\.weight or .* found 'a', 'b'"
    ):
        hf_naming(GEMMA, ["a", "b"], "here")
    with pytest.raises(TensorMismatchError, match="no tensor at all"):
        hf_naming(GEMMA, [], "here")
    with pytest.raises(TensorMismatchError, match=r"'name0'.*and 995 more"):
        hf_naming(GEMMA, [f"name{i}" for i in range(1000)], "here")
