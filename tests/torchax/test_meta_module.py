"""What cannot be served is refused by a typed error that names it, before weights are read or words are made."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.loading.load import load
from tests.torchax.torch_models import COMMON, needs_torch, save_tokenizer

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

SMALL = {"vocab_size": 407, "hidden_size": 32, "num_hidden_layers": 2}


def save(folder, config, model, **fields):
    import transformers

    save_tokenizer(folder)
    made = getattr(transformers, config)(**fields)
    getattr(transformers, model)(made).save_pretrained(folder)


def test_a_state_of_fixed_size_that_is_no_cache_of_keys_and_values(tmp_path):
    save(tmp_path, "MambaConfig", "MambaForCausalLM", **SMALL, state_size=4, intermediate_size=64, eos_token_id=2)
    with pytest.raises(UnsupportedModelError, match=r"MambaForCausalLM cannot be served: .*It was called with a cache"):
        load(f"torchax:{tmp_path}")


def test_layers_of_which_some_keep_something_else(tmp_path):
    own = COMMON | {"head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8,
                    "linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"],
                    "num_hidden_layers": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
                    "shared_expert_intermediate_size": 16}  # fmt: skip
    save(tmp_path, "Qwen3NextConfig", "Qwen3NextForCausalLM", vocab_size=407, **own)
    with pytest.raises(UnsupportedModelError, match=r"Qwen3NextForCausalLM cannot be served"):
        load(f"torchax:{tmp_path}")


def test_the_cause_is_named_where_a_models_code_cannot_be_served(tmp_path):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 407}
    convolving = COMMON | {"vocab_size": 407, "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}
    for config, model, fields, says in (
        ("FalconConfig", "FalconForCausalLM", sizes | {"eos_token_id": 2},
         "A model of the kind 'falcon' cannot be served: .* a list of attentions of its own, which takes no other"),
        ("OPTConfig", "OPTForCausalLM", sizes | {"ffn_dim": 48, "word_embed_proj_dim": 32},
         "OPTForCausalLM cannot be served: its head calls layer 0 by itself, and not by the body"),
        ("Lfm2Config", "Lfm2ForCausalLM", convolving, "asks its cache for 'get_conv_state', which is no part of"),
        ("BloomConfig", "BloomForCausalLM", {"vocab_size": 407, "hidden_size": 32, "n_layer": 2, "n_head": 4},
         "BloomForCausalLM cannot be served: its code asks its cache for 'get_mask_sizes', to make a mask of its own"),
        ("GPT2Config", "GPT2LMHeadModel", {"vocab_size": 407, "n_embd": 32, "n_layer": 2, "n_head": 4},
         "GPT2LMHeadModel cannot be served: its head asks its body for 'cross_attentions', and is given hidden states"),
    ):  # fmt: skip
        folder = tmp_path / model
        folder.mkdir()
        save(folder, config, model, **fields)
        with pytest.raises(UnsupportedModelError, match=says) as caught:
            load(f"torchax:{folder}")
        assert "PassCache" not in str(caught.value)
        assert "object has no attribute" not in str(caught.value)
        assert "gemma_jax" not in str(caught.value)


def test_an_encoder_with_a_decoder(tmp_path):
    sizes = {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_heads": 4, "num_layers": 1, "vocab_size": 407}
    save(tmp_path, "T5Config", "T5ForConditionalGeneration", **sizes)
    with pytest.raises(UnsupportedModelError, match="'t5' has an encoder and a decoder"):
        load(f"torchax:{tmp_path}")
