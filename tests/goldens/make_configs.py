"""Writes configs.json: what transformers makes of every published ``config.json``.

    python tests/goldens/make_configs.py

Needs an environment with torch and transformers 5. The facts are read off the model that transformers builds (without
memory for its weights), not off its configuration alone: what a layer is, not what it was asked to be.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.goldens.published import PUBLISHED, digest
from tests.parity.reference_hf import read_config

OTHER_TOWERS = ("vision_config", "audio_config")


def layer_facts(config: transformers.PreTrainedConfig, layer: torch.nn.Module, index: int) -> dict[str, object]:
    """One layer."""
    attention, mlp = layer.self_attn, layer.mlp
    kind = config.layer_types[index] if hasattr(config, "layer_types") else None
    shares = getattr(attention, "is_kv_shared_layer", False)
    owns_values = not shares and attention.v_proj is not None
    moe = getattr(layer, "enable_moe_block", False)
    return {
        "head_dim": attention.head_dim,
        "query_rows": attention.q_proj.out_features,
        "key_rows": None if shares else attention.k_proj.out_features,
        "value_rows": attention.v_proj.out_features if owns_values else None,
        "group": attention.num_key_value_groups,
        "scale": attention.scaling,
        "window": getattr(attention, "sliding_window", None),
        "cap": getattr(attention, "attn_logit_softcapping", None),
        "qk_norm": hasattr(attention, "q_norm"),
        "ffw": mlp.gate_proj.out_features,
        "kv_from": stored_by(config, kind) if shares else None,
        "layer_scale": hasattr(layer, "layer_scalar"),
        "experts": layer.router.proj.out_features if moe else None,
        "experts_per_token": layer.router.config.top_k_experts if moe else None,
        "expert_ffw": layer.experts.intermediate_dim if moe else None,
        "per_layer_input": layer.per_layer_input_gate.out_features if hasattr(layer, "per_layer_input_gate") else None,
    }


def stored_by(config: transformers.PreTrainedConfig, kind: str) -> int:
    """The layer whose KV the sharing layers of a kind read."""
    modes = zip(config.kv_sharing_modes, config.layer_types, strict=True)
    return next(index for index, (mode, other) in enumerate(modes) if mode == "store" and other == kind)


def frequencies(config: transformers.PreTrainedConfig, rotary: torch.nn.Module) -> dict[str, list[float]]:
    """By kind of layer (or for all): a few of the inverse frequencies."""
    buffers = {name: value.tolist() for name, value in rotary(config).named_buffers() if "original" not in name}
    return {
        name.removesuffix("inv_freq").removesuffix("_") or "all": [values[i] for i in (0, 1, 15, 31, 32, 63, -1)]
        for name, values in buffers.items()
    }


def written(config: transformers.PreTrainedConfig) -> dict[str, object]:
    """The configuration as it is saved."""
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        saved = json.loads(Path(folder, "config.json").read_text())
    return {key: value for key, value in saved.items() if key not in OTHER_TOWERS}


def facts(name: str) -> dict[str, object]:
    """One model: its text part."""
    whole = read_config(PUBLISHED[name])
    config = whole.get_text_config()
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    inner = model.model
    layers = [layer_facts(config, layer, index) for index, layer in enumerate(inner.layers)]
    kinds = [layer for index, layer in enumerate(layers) if layer not in layers[:index]]
    ple = getattr(inner, "embed_tokens_per_layer", None)
    eos = whole.eos_token_id if whole.eos_token_id is not None else config.eos_token_id
    return {
        "published_digest": digest(name),
        "written": written(whole),
        "vocab_size": inner.embed_tokens.num_embeddings,
        "width": inner.embed_tokens.embedding_dim,
        "kinds": kinds,
        "layers": [kinds.index(layer) for layer in layers],
        "frequencies": frequencies(config, type(inner.rotary_emb)),
        "max_context": config.max_position_embeddings,
        "norm_eps": config.rms_norm_eps,
        "logits_cap": getattr(config, "final_logit_softcapping", None),
        "tied": whole.tie_word_embeddings,
        "per_layer_vocabulary": None if ple is None else ple.num_embeddings,
        "bos": config.bos_token_id,
        "eos": eos if isinstance(eos, list) else [eos],
        "pad": config.pad_token_id,
    }


def main() -> None:
    """Write them all, a line each."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    found = {name: facts(name) for name in PUBLISHED}
    lines = [f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in found.items()]
    Path(__file__).with_name("configs.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
