"""Published configurations against what transformers makes of them, and configurations that nobody should publish."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import MOST_LAYERS
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)
from langchain_gemma_jax.models.gemma.rope import _frequencies
from tests.goldens.published import GLOBAL, LOCAL, PUBLISHED, digest
from tests.parity.architectures import MULTIMODAL, SHRUNK

FACTS = json.loads((Path(__file__).parents[2] / "goldens" / "configs.json").read_text())

every = pytest.mark.parametrize("name", PUBLISHED)


def published(name):
    return config_from_hf(PUBLISHED[name], "config.json")


# Published configurations.


def layer_facts(config: ModelConfig, layer: LayerConfig) -> dict[str, object]:
    """Return the facts that ``make_configs.py`` reads off transformers' model, of ours."""
    kv_rows = layer.kv_heads * layer.head_dim
    return {
        "head_dim": layer.head_dim,
        "query_rows": config.heads * layer.head_dim,
        "key_rows": kv_rows if layer.owns_kv else None,
        "value_rows": kv_rows if layer.owns_kv and not layer.k_eq_v else None,
        "group": config.heads // layer.kv_heads,
        "scale": config.attention_scale,
        "window": layer.window,
        "cap": config.attention_softcap,
        "qk_norm": config.qk_norm,
        "ffw": layer.ffw_width,
        "kv_from": layer.kv_from,
        "layer_scale": config.layer_scale,
        "experts": config.moe and config.moe.experts,
        "experts_per_token": config.moe and config.moe.experts_per_token,
        "expert_ffw": config.moe and config.moe.ffw_width,
        "per_layer_input": config.per_layer_input and config.per_layer_input.width,
    }


@every
def test_every_layer_is_what_transformers_builds(name):
    config, facts = published(name), FACTS[name]
    assert [layer_facts(config, layer) for layer in config.layers] == [facts["kinds"][i] for i in facts["layers"]]


@every
def test_the_model_is_what_transformers_builds(name):
    config, facts = published(name), FACTS[name]
    assert {
        "vocab_size": config.vocab_size,
        "width": config.width,
        "max_context": config.max_context,
        "norm_eps": config.norm_eps,
        "logits_cap": config.logits_softcap,
        "tied": config.tied_head,
        "per_layer_vocabulary": config.per_layer_input and config.per_layer_input.vocab_size,
        "bos": config.bos_id,
        "eos": list(config.eos_ids),
        "pad": config.pad_id,
    }.items() <= facts.items()


@every
def test_every_layer_turns_as_fast_as_in_transformers(name):
    config, facts = published(name), FACTS[name]["frequencies"]
    for layer in config.layers:
        expected = facts.get("all") or facts[LOCAL if layer.is_local else GLOBAL]
        found = _frequencies(layer.rope, layer.head_dim)[[0, 1, 15, 31, 32, 63, -1]]
        np.testing.assert_allclose(found, expected, rtol=2e-6)


@every
def test_what_transformers_writes_reads_the_same(name):
    """It spells ropes, patterns and heads in its own way, and says every default."""
    assert config_from_hf(FACTS[name]["written"], "written") == published(name)


@every
def test_the_facts_are_about_these_configurations(name):
    assert FACTS[name]["published_digest"] == digest(name), "run tests/goldens/make_configs.py again"


@every
def test_the_generation_says_which_norms_there_are(name):
    config = published(name)
    generation = {"gemma": 1, "gemma2": 2, "gemma3": 3, "gemma4": 4}[config.generation]
    assert (config.post_norms, config.qk_norm) == (generation >= 2, generation >= 3)
    assert (config.v_norm, config.layer_scale) == (generation == 4, generation == 4)
    assert config.norm_offset == (0.0 if generation == 4 else 1.0)


def test_a_whole_configuration_spelled_out():
    """Nothing of it is left to a comparison with somebody else's defaults."""
    turning = Rope(1_000_000.0, rotated_share=0.25)
    local = LayerConfig(kv_heads=1, head_dim=8, ffw_width=48, rope=Rope(10_000.0), window=8)
    everywhere = LayerConfig(kv_heads=1, head_dim=16, ffw_width=48, rope=turning)
    owners = ((local,) * 4 + (everywhere,)) * 2
    sharing = LayerConfig(kv_heads=1, head_dim=8, ffw_width=96, rope=Rope(10_000.0), window=8, kv_from=8)
    last = LayerConfig(kv_heads=1, head_dim=16, ffw_width=96, rope=turning, kv_from=9)
    assert config_from_hf(SHRUNK["gemma-4-e2b"], "config.json") == ModelConfig(
        generation="gemma4",
        vocab_size=160,
        width=32,
        heads=4,
        layers=(*owners, *(sharing,) * 4, last),
        max_context=512,
        attention_scale=1.0,
        norm_eps=1e-6,
        norm_offset=0.0,
        post_norms=True,
        qk_norm=True,
        v_norm=True,
        layer_scale=True,
        attention_softcap=None,
        logits_softcap=30.0,
        tied_head=True,
        per_layer_input=PerLayerInputConfig(width=8, vocab_size=160),
        bos_id=2,
        eos_ids=(1, 106, 50),
        pad_id=0,
    )


@pytest.mark.parametrize("name", MULTIMODAL)
def test_a_multimodal_configuration_gives_its_text_tower(name):
    raw = MULTIMODAL[name]
    assert config_from_hf(raw, "config.json") == config_from_hf(
        {**raw["text_config"], "eos_token_id": raw["eos_token_id"]}, "config.json"
    )


@pytest.mark.parametrize(("outer", "text"), [("gemma3", "gemma3_text"), ("gemma4_unified", "gemma4_unified_text")])
@pytest.mark.parametrize("inside", [{}, {"text_config": None}, {"text_config": {}}])
def test_a_multimodal_configuration_may_leave_all_to_the_defaults(outer, text, inside):
    found = config_from_hf({"model_type": outer, **inside}, "config.json")
    assert found == config_from_hf({"model_type": text}, "config.json")


def test_the_whole_model_says_where_text_ends():
    """The text tower's own end token is only one of them."""
    raw = PUBLISHED["gemma-4-e2b"]
    assert (raw["text_config"]["eos_token_id"], raw["eos_token_id"]) == (1, [1, 106])
    assert published("gemma-4-e2b").eos_ids == (1, 106)


# What is older, newer, or written by other programs.

G1, G2, G3, G4 = (dict(SHRUNK[name]) for name in ("gemma-2b", "gemma-2-27b", "gemma-3-4b", "gemma-4-31b"))
PLE, MOE = dict(SHRUNK["gemma-4-e2b"]), dict(SHRUNK["gemma-4-26b-a4b"])


def read(base, **changes):
    return config_from_hf({**base, **changes}, "some/config.json")


@pytest.mark.parametrize("name", ["hidden_size", "rope_theta", "rms_norm_eps", "eos_token_id", "head_dim"])
def test_null_is_like_absent(name):
    without = {key: value for key, value in G1.items() if key != name}
    assert read(G1, **{name: None}) == config_from_hf(without, "x")


def test_unknown_names_are_none_of_our_business():
    assert read(G3, cache_implementation="hybrid", dtype="bfloat16", torch_dtype="x", id2label={}) == read(G3)


@pytest.mark.parametrize("spelling", ["sliding_window_pattern", "_sliding_window_pattern"])
def test_a_pattern_can_be_a_number(spelling):
    config = read(G3, num_hidden_layers=7, **{spelling: 3})
    assert [layer.is_local for layer in config.layers] == [True, True, False, True, True, False, True]


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_scaling": {"type": "linear", "factor": 4}},
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}, "rope_theta": 1000000},
        {
            "rope_scaling": None,
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "rope_parameters": {GLOBAL: {"rope_type": "linear", "factor": 4.0}, LOCAL: {"rope_type": "default"}},
        },
        {
            "rope_scaling": None,
            "rope_parameters": {
                GLOBAL: {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6},
                LOCAL: {"rope_type": "default", "rope_theta": 1e4},
                "rope_theta": None,
            },
        },
    ],
)
def test_linear_scaling_in_every_spelling_is_for_global_layers_only(spelling):
    config = read(G3, num_hidden_layers=6, **spelling)
    assert {layer.rope for layer in config.layers[:5]} == {Rope(10_000.0)}
    assert config.layers[5].rope == Rope(1_000_000.0, position_scale=4.0)


def test_without_rope_parameters_gemma_4_turns_a_quarter_of_its_global_heads():
    config = read({name: value for name, value in G4.items() if name != "rope_parameters"})
    assert config.layers[0].rope == Rope(10_000.0)
    assert config.layers[5].rope == Rope(1_000_000.0, rotated_share=0.25)


def test_the_last_layer_of_gemma_4_is_global_whatever_is_asked():
    config = read(G4, layer_types=[LOCAL, GLOBAL, LOCAL, LOCAL, LOCAL, LOCAL])
    assert [layer.is_local for layer in config.layers] == [True, False, True, True, True, False]
    assert config.layers[5].head_dim == 16


def test_fewer_global_heads_come_with_the_key_as_value_only():
    assert {layer.kv_heads for layer in read(G4, attention_k_eq_v=False).layers} == {4}
    assert [layer.kv_heads for layer in read(G4).layers] == [4, 4, 4, 4, 4, 2]


@pytest.mark.parametrize("key", ["5", "05", "005"])
def test_layers_that_differ_can_be_listed(key):
    """As transformers writes them, which pads the numbers to equal lengths."""
    config = read(G4, per_layer_config={key: {"head_dim": 12, "num_key_value_heads": 8}, "1": {}})
    assert [(layer.head_dim, layer.kv_heads) for layer in config.layers] == [(8, 4)] * 5 + [(12, 8)]


def test_no_layer_differs_if_the_list_is_empty():
    assert {layer.head_dim for layer in read(G4, per_layer_config={}).layers} == {8}


def test_the_unified_model_ignores_what_it_has_not():
    raw = dict(SHRUNK["gemma-4-12b"])
    found = read(raw, hidden_size_per_layer_input=8, enable_moe_block=True, num_experts=4)
    assert found == read(raw)
    assert (found.moe, found.per_layer_input) == (None, None)


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_tied_unless_it_is_said_not_to_be(tied):
    assert read(G1).tied_head
    assert read(G1, tie_word_embeddings=tied).tied_head is tied
    assert (
        config_from_hf({"model_type": "gemma3", "tie_word_embeddings": tied, "text_config": G3}, "x").tied_head is tied
    )


def test_gelu_is_the_tanh_approximation_in_gemma_1_only():
    assert read(G1, hidden_act="gelu") == read(G1, hidden_act="gelu_pytorch_tanh") == read(G1, hidden_activation="gelu")
    with pytest.raises(UnsupportedModelError, match="hidden_activation='gelu'"):
        read(G2, hidden_activation="gelu")


# What must not be.

UNSUPPORTED = {
    "no model type": ({}, "model_type of .*, gemma, gemma2, gemma3, .*found None"),
    "another family": ({"model_type": "llama"}, "found 'llama'. Models of other families .* torchax: before the model"),
    "a model type that is no name": ({"model_type": ["gemma"]}, r"found \['gemma'\]"),
    "an endless model type": ({"model_type": "x" * 10**6}, "found 'xxx"),
    "Gemma 3n": ({"model_type": "gemma3n"}, "Gemma 3n is not supported: .* Use a Gemma 4"),
    "Gemma 3n's text": ({"model_type": "gemma3n_text"}, "Gemma 3n is not supported"),
    "RecurrentGemma": ({"model_type": "recurrent_gemma"}, "RecurrentGemma is not supported: its recurrent layers"),
    "T5Gemma": ({"model_type": "t5gemma"}, "T5Gemma is not supported: it has an encoder and a decoder. Use a Gemma 2"),
    "T5Gemma 2": ({"model_type": "t5gemma2"}, "T5Gemma 2 is not supported: .* Use a Gemma 3"),
    "an encoder alone": ({"model_type": "gemma4_vision"}, "found the vision encoder of a Gemma 4, .* Give the folder"),
    "DiffusionGemma": ({"model_type": "diffusion_gemma"}, "DiffusionGemma is not supported: it writes blocks"),
    "quantized": (G3 | {"quantization_config": {"bits": 4}}, "found a quantization_config. Use the unquantized"),
    "quantized inside": ({"model_type": "gemma3", "text_config": {"quantization_config": {}}}, "quantization_config"),
    "another activation": (G3 | {"hidden_activation": "silu"}, "hidden_activation='silu' is not supported"),
    "another activation in Gemma 1": (G1 | {"hidden_act": "relu"}, "hidden_act='relu' is not supported"),
    "an activation that is no name": (G3 | {"hidden_activation": {"a": 1}}, "hidden_activation"),
    "biases": (G1 | {"attention_bias": True}, "attention_bias=True is not supported: .* no biases"),
    "an encoder of Gemma 2": (G2 | {"use_bidirectional_attention": True}, "use_bidirectional_attention=True is not"),
    "an encoder of another kind": (G3 | {"use_bidirectional_attention": "all"}, "use_bidirectional_attention='all'"),
    "an encoder of Gemma 4": (G4 | {"use_bidirectional_attention": "all"}, "use_bidirectional_attention='all'"),
    "a cap that Gemma 3 has not": (G3 | {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0"),
    "scaling that Gemma 2 has not": (G2 | {"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling"),
    "another rope": (G3 | {"rope_scaling": {"rope_type": "yarn", "factor": 2}}, "found 'yarn'"),
    "another rope in Gemma 1": (G1 | {"rope_parameters": {"rope_type": "llama3"}}, "found 'llama3'"),
    "a partial linear rope": (
        G3 | {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}},
        "partial_rotary_factor=0.5 is not supported",
    ),
    "layers that differ in more": (G4 | {"per_layer_config": {"3": {"intermediate_size": 9}}}, "intermediate_size=9"),
    "layers that are skipped": (G4 | {"per_layer_config": {"3": {"skip": ["mlp"]}}}, "skip=.* only the heads"),
    "layers that differ in Gemma 3": (G3 | {"per_layer_config": {"3": {"head_dim": 4}}}, "per_layer_config"),
}

MALFORMED = {
    "PaliGemma around another tower": (
        {"model_type": "paligemma", "text_config": {"model_type": "gemma3_text"}},
        "expected model_type to be 'gemma' or 'gemma2', found 'gemma3_text'",
    ),
    "a float for a count": (G1 | {"num_hidden_layers": 3.0}, "num_hidden_layers to be int, found 3.0"),
    "a string for a count": (G1 | {"vocab_size": "160"}, "vocab_size to be int, found '160'"),
    "a truth for a count": (G1 | {"num_hidden_layers": True}, "num_hidden_layers to be int, found True"),
    "a list for a count": (G1 | {"hidden_size": [32]}, "hidden_size to be int"),
    "a number for a truth": (PLE | {"use_double_wide_mlp": 1}, "use_double_wide_mlp to be bool, found 1"),
    "a string for a truth": (G1 | {"tie_word_embeddings": "false"}, "tie_word_embeddings to be bool, found 'false'"),
    "a string for a number": (G2 | {"final_logit_softcapping": "30"}, "final_logit_softcapping to be float"),
    "a truth for a number": (G1 | {"rope_theta": True}, "rope_theta to be float, found True"),
    "nothing for a size": (G1 | {"hidden_size": 0}, "hidden_size to be from 1 to .*, found 0"),
    "less than nothing": (G1 | {"num_attention_heads": -4}, "num_attention_heads to be from 1 to .*, found -4"),
    "no heads": (G1 | {"num_key_value_heads": 0}, "num_key_value_heads"),
    "no window": (G2 | {"sliding_window": 0}, "sliding_window to be from 1"),
    "no pattern": (G3 | {"sliding_window_pattern": 0}, "sliding_window_pattern to be from 1"),
    "a width below zero": (PLE | {"hidden_size_per_layer_input": -8}, "hidden_size_per_layer_input to be from 1"),
    "no second vocabulary": (PLE | {"vocab_size_per_layer_input": 0}, "vocab_size_per_layer_input"),
    "no experts": (MOE | {"num_experts": 0}, "num_experts to be from 1"),
    "more experts than there are": (
        MOE | {"top_k_experts": 17},
        "top_k_experts to be at most num_experts=16, found 17",
    ),
    "a million million layers": (
        G1 | {"num_hidden_layers": 10**12},
        f"num_hidden_layers to be from 1 to {MOST_LAYERS}",
    ),
    "too many layers in Gemma 3": (G3 | {"num_hidden_layers": MOST_LAYERS + 1}, "num_hidden_layers"),
    "too many layers in Gemma 4": (G4 | {"num_hidden_layers": 10**12, "layer_types": None}, "num_hidden_layers"),
    "too many layers in Gemma 2": (G2 | {"num_hidden_layers": 10**12}, "num_hidden_layers"),
    "a size that no array has": (G1 | {"vocab_size": 10**12}, "vocab_size to be from 1 to 2147483647"),
    "a number that no float holds": (G1 | {"rope_theta": 10**400}, "rope_theta to be float, found 1000"),
    "no number": (G1 | {"rms_norm_eps": math.nan}, "rms_norm_eps to be finite, found nan"),
    "an infinite base": (G1 | {"rope_theta": math.inf}, "rope_theta to be finite, found inf"),
    "an infinite cap": (G2 | {"attn_logit_softcapping": math.inf}, "attn_logit_softcapping to be finite"),
    "an epsilon below zero": (G1 | {"rms_norm_eps": -1e-6}, "rms_norm_eps to be positive, found -1e-06"),
    "no epsilon": (G1 | {"rms_norm_eps": 0.0}, "rms_norm_eps to be positive"),
    "a cap at zero": (G2 | {"final_logit_softcapping": 0.0}, "final_logit_softcapping to be positive, found 0.0"),
    "no base": (G1 | {"rope_theta": 0.0}, "rope_theta to be positive"),
    "no factor": (G3 | {"rope_scaling": {"rope_type": "linear"}}, "factor to be positive, found 0.0"),
    "a factor below zero": (G3 | {"rope_scaling": {"rope_type": "linear", "factor": -8.0}}, "factor to be positive"),
    "more than all of a head": (
        G4 | {"rope_parameters": {GLOBAL: {"partial_rotary_factor": 1.5}}},
        "partial_rotary_factor to be at most 1, found 1.5",
    ),
    "a rope that is a name": (G3 | {"rope_scaling": "linear"}, "rope_scaling to be an object, found 'linear'"),
    "ropes in a list": (G4 | {"rope_parameters": [{}]}, "rope_parameters to be an object"),
    "one rope that is a number": (G4 | {"rope_parameters": {LOCAL: 1e4}}, "sliding_attention to be an object"),
    "too few layer types": (G4 | {"layer_types": [LOCAL, GLOBAL]}, r"layer_types to be a list of 6 times 'sliding"),
    "too many layer types": (G3 | {"layer_types": [GLOBAL] * 11}, "layer_types to be a list of 10 times"),
    "unknown layer types": (G3 | {"layer_types": ["chunked_attention"] * 10}, "found .'chunked"),
    "layer types that are tables": (G3 | {"layer_types": [{}] * 10}, "layer_types"),
    "layer types in one word": (G3 | {"layer_types": GLOBAL}, "layer_types"),
    "heads that do not divide": (G1 | {"num_key_value_heads": 3}, "the 4 attention heads to be a multiple .* found 3"),
    "an odd head": (G1 | {"head_dim": 7}, "an even head_dim, found 7 in layer 0"),
    "more sharing than layers": (
        PLE | {"num_kv_shared_layers": 16},
        "num_kv_shared_layers to be from 0 to 14, found 16",
    ),
    "all layers share": (PLE | {"num_kv_shared_layers": 15}, "num_kv_shared_layers to be from 0 to 14"),
    "less sharing than none": (PLE | {"num_kv_shared_layers": -1}, "num_kv_shared_layers to be from 0 to 14, found -1"),
    "nobody to share with": (PLE | {"num_kv_shared_layers": 12}, "layers that own KV to be at least one local and one"),
    "heads unlike those that are shared": (
        PLE | {"per_layer_config": {"4": {"head_dim": 16}, "9": {"head_dim": 16}}},
        r"layer 14 to have the heads of layer 9, .* found 1 of size 8 instead of 1 of 16",
    ),
    "a layer that is not there": (G4 | {"per_layer_config": {"6": {}}}, "number, from 0 to 5, found '6'"),
    "a layer twice": (G4 | {"per_layer_config": {"4": {}, "04": {}}}, "another layer's number.* found '04'"),
    "a layer by name": (G4 | {"per_layer_config": {"last": {}}}, "found 'last'"),
    "a layer below zero": (G4 | {"per_layer_config": {"-1": {}}}, "found '-1'"),
    "a layer in another script": (G4 | {"per_layer_config": {"٣": {}}}, "per_layer_config"),
    "a layer beyond counting": (G4 | {"per_layer_config": {"9" * 5000: {}}}, "per_layer_config"),
    "a layer that is a number": (G4 | {"per_layer_config": {"3": 7}}, "3 to be an object, found 7"),
    "layers in a list": (G4 | {"per_layer_config": [1]}, "per_layer_config to be an object"),
    "a token that is a name": (G1 | {"eos_token_id": "<eos>"}, "eos_token_id to be a token id or a list of them"),
    "a token below zero": (G1 | {"bos_token_id": -1}, "bos_token_id"),
    "no token": (G1 | {"bos_token_id": []}, r"bos_token_id to be a token id or a list of them, found \[\]"),
    "no end": (G1 | {"eos_token_id": []}, "eos_token_id"),
    "a truth among tokens": (G1 | {"eos_token_id": [1, True]}, "eos_token_id"),
    "a token beyond counting": (G1 | {"pad_token_id": 2**40}, "pad_token_id"),
    "a text tower in a list": ({"model_type": "gemma3", "text_config": [G3]}, "text_config to be an object"),
    "another text tower": (
        {"model_type": "gemma3", "text_config": G2},
        "model_type to be 'gemma3_text', found 'gemma2'",
    ),
}


@pytest.mark.parametrize(("raw", "message"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_is_not_implemented_is_refused(raw, message):
    with pytest.raises(UnsupportedModelError, match=message) as caught:
        config_from_hf(raw, "some/config.json")
    assert str(caught.value).startswith("some/config.json")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("raw", "message"), MALFORMED.values(), ids=MALFORMED)
def test_what_cannot_be_is_refused(raw, message):
    with pytest.raises(ConfigError, match=message) as caught:
        config_from_hf(raw, "some/config.json")
    assert str(caught.value).startswith("some/config.json")
    assert len(str(caught.value)) < 500


def test_errors_in_a_text_tower_say_so():
    with pytest.raises(ConfigError, match=r"some/config\.json \(text_config\): expected hidden_size"):
        config_from_hf({"model_type": "gemma4", "text_config": G4 | {"hidden_size": 0}}, "some/config.json")


WRONG = [None, True, False, 0, -1, 3, 2**70, 10**400, 0.5, math.nan, math.inf, "", "x", [], [1], [[]], {}, {"0": {}}]


@pytest.mark.parametrize("base", [G1, G2, G3, G4, PLE, MOE], ids=["G1", "G2", "G3", "G4", "PLE", "MOE"])
def test_any_value_anywhere_gives_a_configuration_or_a_typed_error(base):
    """And a configuration has layers that a program could be made of."""
    for name in base:
        for value in WRONG:
            try:
                config = config_from_hf({**base, name: value}, "config.json")
            except (ConfigError, UnsupportedModelError):
                continue
            assert 1 <= len(config.layers) <= MOST_LAYERS
            assert all(config.heads % layer.kv_heads == 0 and layer.head_dim % 2 == 0 for layer in config.layers)
            assert config.moe is None or isinstance(config.moe, MoeConfig)
