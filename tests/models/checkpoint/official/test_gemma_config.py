from __future__ import annotations

import dataclasses
import enum
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.official.gemma_config import (
    like_published,
    read_architecture,
    same_architecture,
)
from langchain_gemma_jax.models.configuration.catalog import known


class AttentionType(enum.Enum):
    GLOBAL = 1
    LOCAL_SLIDING = 2


def layers(period, count):
    return tuple(
        AttentionType.GLOBAL if (index + 1) % period == 0 else AttentionType.LOCAL_SLIDING for index in range(count)
    )


class Older(SimpleNamespace):
    """The fields of the library's configuration up to Gemma 3, in the words of its classes."""

    def __init__(self, scale_by, **fields):
        published = {
            "final_logit_softcap": None,
            "use_post_attn_norm": True,
            "use_post_ffw_norm": True,
            "attn_logits_soft_cap": None,
            "sliding_window_size": None,
            "use_qk_norm": False,
            "local_base_frequency": 10_000,
            "global_base_frequency": 10_000,
            "local_scale_factor": 1.0,
            "global_scale_factor": 1.0,
            "query_pre_attn_scalar": lambda: scale_by**-0.5,
        }
        super().__init__(**published | fields)


class Gemma4(SimpleNamespace):
    """The fields that it has for Gemma 4."""

    def __init__(self, **fields):
        published = {
            "num_embed": 262144,
            "head_dim": 256,
            "final_logit_softcap": 30.0,
            "use_post_attn_norm": True,
            "use_post_ffw_norm": True,
            "qk_norm_with_scale": True,
            "num_global_kv_heads": None,
            "global_key_size": 512,
            "k_eq_v_global": False,
            "global_rope_proportion": 0.25,
            "local_rope_proportion": 1.0,
            "attn_logits_soft_cap": None,
            "local_base_frequency": 10_000,
            "global_base_frequency": 1_000_000,
            "local_scale_factor": 1.0,
            "global_scale_factor": 1.0,
            "per_layer_input_dim": 0,
            "kv_cache_sharing_config": None,
            "override_kv_shared_ffw_hidden": None,
            "enable_moe": False,
        }
        super().__init__(**published | fields)


def sizes(width, ffw, heads, kv_heads, head_dim=256):
    return {"embed_dim": width, "hidden_dim": ffw, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": head_dim}


def shared(share):
    return SimpleNamespace(frac_shared_layers=share, share_global=True, share_local=True)


GEMMA1 = {"num_embed": 256128, "use_post_attn_norm": False, "use_post_ffw_norm": False}
GEMMA2 = {"num_embed": 256128, "final_logit_softcap": 30.0, "attn_logits_soft_cap": 50.0, "sliding_window_size": 4096}
GEMMA3 = {"num_embed": 262144, "use_qk_norm": True, "global_base_frequency": 1_000_000, "sliding_window_size": 512}
LARGER_GEMMA3 = GEMMA3 | {"sliding_window_size": 1024, "global_scale_factor": 8.0}
LARGE_GEMMA4 = {"sliding_window_size": 1024, "k_eq_v_global": True}

OFFICIAL = {
    "gemma-2b": Older(256, **GEMMA1, **sizes(2048, 16384, 8, 1), attention_types=layers(1, 18)),
    "gemma-2-2b": Older(256, **GEMMA2, **sizes(2304, 9216, 8, 4), attention_types=layers(2, 26)),
    "gemma-2-27b": Older(144, **GEMMA2, **sizes(4608, 36864, 32, 16, 128), attention_types=layers(2, 46)),
    "gemma-3-1b": Older(256, **GEMMA3, **sizes(1152, 6912, 4, 1), attention_types=layers(6, 26)),
    "gemma-3-27b": Older(168, **LARGER_GEMMA3, **sizes(5376, 21504, 32, 16, 128), attention_types=layers(6, 62)),
    "gemma-4-e2b": Gemma4(
        **sizes(1536, 6144, 8, 1),
        attention_types=layers(5, 35),
        sliding_window_size=512,
        per_layer_input_dim=256,
        kv_cache_sharing_config=shared(20 / 35),
        override_kv_shared_ffw_hidden=12288,
    ),
    "gemma-4-e4b": Gemma4(
        **sizes(2560, 10240, 8, 2),
        attention_types=layers(6, 42),
        sliding_window_size=512,
        per_layer_input_dim=256,
        kv_cache_sharing_config=shared(18 / 42),
    ),
    "gemma-4-31b": Gemma4(
        **sizes(5376, 21504, 32, 16), attention_types=layers(6, 60), num_global_kv_heads=4, **LARGE_GEMMA4
    ),
    "gemma-4-26b-a4b": Gemma4(
        **sizes(2816, 2112, 16, 8),
        attention_types=layers(6, 30),
        num_global_kv_heads=2,
        enable_moe=True,
        num_experts=128,
        top_k_experts=8,
        expert_dim=704,
        moe_dense_hidden_dim=2112,
        **LARGE_GEMMA4,
    ),
}


def model(config):
    return SimpleNamespace(config=config)


def changed(name, **fields):
    return model(SimpleNamespace(**vars(OFFICIAL[name]) | fields))


@pytest.mark.parametrize("name", OFFICIAL)
def test_the_librarys_configuration_says_what_hugging_faces_says(name):
    found = read_architecture(model(OFFICIAL[name]))

    assert same_architecture(known()[name], found)


@pytest.mark.parametrize("name", ["gemma-3-1b", "gemma-4-31b"])
def test_what_the_library_does_not_say_is_the_published_models(name):
    found = like_published(read_architecture(model(OFFICIAL[name])), known().values())

    assert found == known()[name]


def test_an_architecture_of_ones_own_has_the_shortest_context_of_its_generation():
    own = changed("gemma-3-27b", attention_types=layers(6, 12))

    found = like_published(read_architecture(own), known().values())

    assert (found.max_context, found.eos_ids, len(found.layers)) == (32768, (1, 106), 12)


def test_another_number_anywhere_is_another_architecture():
    found = read_architecture(model(OFFICIAL["gemma-3-1b"]))

    assert not same_architecture(known()["gemma-3-1b"], found.replace(logits_softcap=30.0))
    assert not same_architecture(known()["gemma-3-1b"], found.replace(layers=found.layers[:-1]))


def test_kv_is_shared_by_the_kinds_of_layer_that_share():
    sharing = SimpleNamespace(frac_shared_layers=0.5, share_global=True, share_local=False)
    found = read_architecture(changed("gemma-4-e2b", attention_types=layers(2, 8), kv_cache_sharing_config=sharing))

    assert [layer.kv_from for layer in found.layers] == [None, None, None, None, None, 3, None, 3]
    assert [layer.ffw_width for layer in found.layers] == [6144, 6144, 6144, 6144, 6144, 12288, 6144, 12288]


def test_global_layers_without_sizes_of_their_own_have_the_local_ones():
    found = read_architecture(changed("gemma-4-31b", global_key_size=None, num_global_kv_heads=None))

    assert {(layer.head_dim, layer.kv_heads) for layer in found.layers} == {(256, 16)}


def test_a_gemma_3n_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"SimpleNamespace.config is a Gemma 3n"):
        read_architecture(changed("gemma-3-1b", use_altup=True))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gemma-2-2b", {"use_post_ffw_norm": False}, r"use_post_attn_norm=True, use_post_ffw_norm=False"),
        ("gemma-4-31b", {"qk_norm_with_scale": False}, r"qk_norm_with_scale: expected True"),
        ("gemma-3-1b", {"attention_types": ("CHUNKED",)}, r"expected LOCAL_SLIDING and GLOBAL, found CHUNKED"),
    ],
)
def test_options_without_an_equal_are_refused(name, fields, message):
    with pytest.raises(UnsupportedModelError, match=message):
        read_architecture(changed(name, **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"embed_dim": "1152"}, r"config\.embed_dim: expected a whole number, found '1152'"),
        ({"use_qk_norm": 1}, r"config\.use_qk_norm: expected True or False, found 1"),
        ({"global_base_frequency": None}, r"config\.global_base_frequency: expected a number, found None"),
        ({"attention_types": 26}, r"config\.attention_types: expected a sequence of AttentionType, found 26"),
        ({"query_pre_attn_scalar": 0.0625}, r"config\.query_pre_attn_scalar: expected a method, found 0\.0625"),
    ],
)
def test_a_field_of_another_type_is_named(fields, message):
    with pytest.raises(ConfigError, match=message):
        read_architecture(changed("gemma-3-1b", **fields))


@pytest.mark.parametrize("thing", [None, "gemma-3-1b", SimpleNamespace(config=SimpleNamespace())])
def test_what_is_no_model_of_the_library(thing):
    with pytest.raises(ConfigError, match=r"expected a field of the official library's .*gm\.nn\.Gemma3_1B"):
        read_architecture(thing)


def test_all_published_sizes_of_one_architecture_differ_in_nothing_that_is_compared():
    first, second = known()["gemma-3-270m"], known()["functiongemma-270m"]

    assert dataclasses.replace(first, eos_ids=second.eos_ids) == second
    assert same_architecture(first, second)
