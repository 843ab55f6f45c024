"""Families of transformers that are tried: which are served, and how; which are refused, and by which sentence.

The tables in docs/torchax.md are made of these, and a test compares. ``python -m tests.torchax.matrix`` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.torchax.torch_models import COMMON, FAMILIES, save_random

PAGE = Path(__file__).parents[2] / "docs" / "torchax.md"

KERNELS = "kernels"
SINKS = "XLA: attention sinks"
CHUNKED = "XLA: a mask in chunks"
OWN = "the model's own code"


@dataclass(frozen=True)
class Served:
    """A family that is served, as a shrunk configuration."""

    config: str  # transformers' class
    kind: str  # its ``model_type``
    how: str = KERNELS  # what attends
    fields: Mapping[str, Any] = field(default_factory=dict)
    common: bool = True  # with the fields of ``COMMON``; older families have names of their own

    @property
    def sizes(self) -> dict[str, Any]:
        """All fields of the configuration but the vocabulary's size."""
        return {**(COMMON if self.common else _OLD), **self.fields}

    def save(self, folder: Path, name: str) -> Any:
        """Write a random model, and return torch's."""
        return save_random(folder, self.config, self.sizes, norms_around_one="gemma" not in name)


@dataclass(frozen=True)
class Refused:
    """A family that is refused, by its configuration: the weights are never read."""

    kind: str
    why: str  # as the page has it
    sentence: str  # a part of the error
    fields: Mapping[str, Any]  # of its config.json


_OLD = {"bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0}
_GPT = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 512}
_MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_LOCAL_MOE = {"num_local_experts": 4, "num_experts_per_tok": 2}
_ROUTED = {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
}  # fmt: skip
_LATENT = {
    "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12,
    "v_head_dim": 12,
}  # fmt: skip
_FALCON = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 512}
_WINDOW = {"sliding_window": 20, "num_hidden_layers": 4}
_SHARED = {
    "head_dim": 16, "sliding_window": 20, "num_hidden_layers": 6, "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 3, "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 400,
}  # fmt: skip
_GEMMA = {"head_dim": 16, "sliding_window": 24, "query_pre_attn_scalar": 16}

_KINDS = {
    "LlamaConfig": "llama", "Qwen2Config": "qwen2", "Qwen3Config": "qwen3", "Gemma2Config": "gemma2",
    "Gemma3TextConfig": "gemma3_text", "MistralConfig": "mistral", "SmolLM3Config": "smollm3", "Phi3Config": "phi3",
    "GraniteConfig": "granite", "Qwen3MoeConfig": "qwen3_moe",
}  # fmt: skip

SERVED: dict[str, Served] = {
    **{name: Served(config, _KINDS[config], fields=fields) for name, (config, fields) in FAMILIES.items()},
    "apertus": Served("ApertusConfig", "apertus"),
    "arcee": Served("ArceeConfig", "arcee"),
    "biogpt": Served("BioGptConfig", "biogpt", OWN),
    "bitnet": Served("BitNetConfig", "bitnet"),
    "bloom": Served("BloomConfig", "bloom", OWN, {"hidden_size": 64, "n_layer": 3, "n_head": 4}, common=False),
    "codegen": Served("CodeGenConfig", "codegen", fields={**_GPT, "rotary_dim": 8}, common=False),
    "cohere": Served("CohereConfig", "cohere"),
    "cohere 2": Served("Cohere2Config", "cohere2", fields=_WINDOW),
    "ctrl": Served("CTRLConfig", "ctrl", fields={"n_embd": 64, "n_layer": 3, "n_head": 4, "dff": 96}, common=False),
    "deepseek 2": Served("DeepseekV2Config", "deepseek_v2", OWN, _LATENT | _ROUTED),
    "deepseek 3": Served("DeepseekV3Config", "deepseek_v3", OWN, _LATENT | _ROUTED | {"n_group": 2}),
    "dots 1": Served("Dots1Config", "dots1", fields=_ROUTED),
    "ernie 4.5": Served("Ernie4_5Config", "ernie4_5"),
    "exaone 4": Served("Exaone4Config", "exaone4", fields=_WINDOW),
    "falcon": Served("FalconConfig", "falcon", OWN, _FALCON, common=False),
    "falcon, alibi": Served("FalconConfig", "falcon", OWN, _FALCON | {"alibi": True}, common=False),
    "falcon, 40b": Served(
        "FalconConfig", "falcon", OWN, _FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}, common=False
    ),
    "gemma 1": Served("GemmaConfig", "gemma", fields={"head_dim": 16}),
    "gemma 3n, text": Served(
        "Gemma3nTextConfig",
        "gemma3n_text",
        fields=_SHARED
        | {"altup_num_inputs": 2, "laurel_rank": 8, "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]},
    ),
    "gemma 4, text": Served("Gemma4TextConfig", "gemma4_text", fields=_SHARED | {"global_head_dim": 32}),
    "glm 4": Served("Glm4Config", "glm4", fields={"head_dim": 16}),
    "glm 4 moe": Served("Glm4MoeConfig", "glm4_moe", fields=_ROUTED | {"head_dim": 16}),
    "gpt 2": Served("GPT2Config", "gpt2", fields=_GPT, common=False),
    "gpt bigcode": Served("GPTBigCodeConfig", "gpt_bigcode", fields=_GPT, common=False),
    "gpt-j": Served("GPTJConfig", "gptj", fields={**_GPT, "rotary_dim": 8}, common=False),
    "gpt-neox": Served("GPTNeoXConfig", "gpt_neox"),
    "gpt-oss": Served(
        "GptOssConfig",
        "gpt_oss",
        SINKS,
        _LOCAL_MOE | _WINDOW | {"head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
    ),
    # Its own factor of scores is 1, with which torch's float32 is 2e-5 from its float64.
    "granite moe": Served("GraniteMoeConfig", "granitemoe", fields=_LOCAL_MOE | {"attention_multiplier": 0.2}),
    "helium": Served("HeliumConfig", "helium", fields={"head_dim": 16}),
    "hunyuan": Served("HunYuanDenseV1Config", "hunyuan_v1_dense", fields={"head_dim": 16}),
    "llama 4, text": Served(
        "Llama4TextConfig",
        "llama4_text",
        CHUNKED,
        {
            "intermediate_size_mlp": 96, "num_local_experts": 4, "num_experts_per_tok": 1, "head_dim": 16,
            "attention_chunk_size": 20, "num_hidden_layers": 4, "floor_scale": 8, "no_rope_layer_interval": 4,
            "interleave_moe_layer_step": 2,
        },
    ),
    "minicpm 3": Served("MiniCPM3Config", "minicpm3", OWN, _LATENT),
    "ministral": Served("MinistralConfig", "ministral", fields={"sliding_window": 20, "head_dim": 16}),
    "mixtral": Served("MixtralConfig", "mixtral", fields=_LOCAL_MOE),
    "mpt": Served(
        "MptConfig", "mpt", OWN, {"d_model": 64, "n_layers": 3, "n_heads": 4, "max_seq_len": 512}, common=False
    ),
    "nemotron": Served("NemotronConfig", "nemotron"),
    "olmo 2": Served("Olmo2Config", "olmo2"),
    "olmo 3": Served("Olmo3Config", "olmo3", fields=_WINDOW),
    "olmoe": Served("OlmoeConfig", "olmoe", fields={"num_experts": 4, "num_experts_per_tok": 2}),
    "opt": Served("OPTConfig", "opt", OWN, {"ffn_dim": 96, "word_embed_proj_dim": 64}),
    "persimmon": Served("PersimmonConfig", "persimmon", fields={"num_key_value_heads": 4}),
    "phi 2": Served("PhiConfig", "phi"),
    "phi moe": Served("PhimoeConfig", "phimoe", fields=_LOCAL_MOE),
    "qwen 2 moe": Served("Qwen2MoeConfig", "qwen2_moe", fields=_MOE | {"shared_expert_intermediate_size": 32}),
    "seed-oss": Served("SeedOssConfig", "seed_oss", fields={"head_dim": 16}),
    "stablelm": Served("StableLmConfig", "stablelm"),
    "starcoder 2": Served("Starcoder2Config", "starcoder2", fields={"sliding_window": 20}),
    "vaultgemma": Served("VaultGemmaConfig", "vaultgemma", fields=_GEMMA),
    "xglm": Served(
        "XGLMConfig",
        "xglm",
        OWN,
        {"d_model": 64, "num_layers": 3, "attention_heads": 4, "ffn_dim": 96, "max_position_embeddings": 512,
         "pad_token_id": 1},
        common=False,
    ),
}  # fmt: skip

_STATE = "state-space or recurrent layers"
_KEEPS = "keep a state of a recurrence or a convolution"
_SMALL = {"hidden_size": 32, "num_hidden_layers": 2}
_HYBRID = COMMON | {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8}

REFUSED: dict[str, Refused] = {
    "bamba": Refused("bamba", _STATE, _KEEPS, _HYBRID),
    "diffusion gemma": Refused("diffusion_gemma", "writes blocks by diffusion", "by diffusion", {"text_config": {}}),
    "doge": Refused("doge", "changes the mask of its attention", "changes the mask", dict(COMMON)),
    "falcon mamba": Refused("falcon_mamba", _STATE, _KEEPS, _SMALL | {"state_size": 4}),
    "gpt-neo": Refused(
        "gpt_neo", "has a list of attentions of its own", "a list of attentions of its own",
        {"hidden_size": 64, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "num_heads": 4},
    ),
    "granite 4, hybrid": Refused(
        "granitemoehybrid", _STATE, _KEEPS, _HYBRID | {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2}
    ),
    "jamba": Refused(
        "jamba", _STATE, _KEEPS,
        COMMON | {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2},
    ),
    "jetmoe": Refused(
        "jetmoe", "its experts are chosen by numbers on the host", "decides by a number",
        COMMON | _LOCAL_MOE | {"kv_channels": 16},
    ),
    "lfm 2": Refused(
        "lfm2", "convolutions", _KEEPS, COMMON | {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2}
    ),
    "mamba": Refused("mamba", _STATE, _KEEPS, _SMALL | {"state_size": 4}),
    "mamba 2": Refused(
        "mamba2", _STATE, _KEEPS,
        _SMALL | {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1, "expand": 2,
                  "time_step_limit": [0.0, {"__float__": "Infinity"}]},
    ),
    "minimax": Refused("minimax", _STATE, _KEEPS, COMMON | {"num_local_experts": 2, "num_experts_per_tok": 1}),
    "qwen 3 next": Refused(
        "qwen3_next", _STATE, _KEEPS,
        COMMON | {"head_dim": 16, "layer_types": ["linear_attention", "full_attention"], "num_hidden_layers": 2,
                  "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16},
    ),
    "recurrent gemma": Refused(
        "recurrent_gemma", _STATE, _KEEPS,
        {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96, "lru_width": 64},
    ),
    "rwkv": Refused(
        "rwkv", _STATE, "its layers keep something else", _SMALL | {"attention_hidden_size": 32, "context_length": 64}
    ),
    "t5gemma": Refused(
        "t5gemma", "an encoder and a decoder", "has an encoder and a decoder", {"is_encoder_decoder": True}
    ),
    "xlstm": Refused(
        "xlstm", _STATE, "which is no part of keys and values", {"hidden_size": 64, "num_blocks": 2, "num_heads": 4}
    ),
}  # fmt: skip


def tables() -> dict[str, str]:
    """The page's two tables, by their names."""
    served = [(one.how, one.kind) for one in SERVED.values()]
    refused = [(one.why, one.kind) for one in REFUSED.values()]
    return {
        "served": "\n".join(["| attention | `model_type` |", "|---|---|", *_rows(served)]),
        "refused": "\n".join(["| why not | `model_type` |", "|---|---|", *_rows(refused)]),
    }


def _rows(pairs: Iterable[tuple[str, str]]) -> list[str]:
    kinds: dict[str, list[str]] = {}
    for what, kind in sorted(set(pairs)):
        kinds.setdefault(what, []).append(f"`{kind}`")
    return [f"| {what} | {', '.join(each)} |" for what, each in kinds.items()]


def with_tables(page: str) -> str:
    """The page with its two tables as they should be."""
    for name, table in tables().items():
        begin, end = f"<!-- families {name}: written by tests/torchax/matrix.py -->", f"<!-- families {name}: end -->"
        found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(found.findall(page)) != 1:
            raise ValueError(f"expected {begin} and its end once each")
        page = found.sub(lambda _, new=f"{begin}\n\n{table}\n\n{end}": new, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
