"""Drafters of both kinds, shrunk, with the targets that they belong to. Plain values only, as in ``architectures.py``.

The vocabulary is tiny, so that guesses of random weights are right often enough to see what follows.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.parity.architectures import GLOBAL, LOCAL, SHRUNK, Raw

VOCABULARY, WIDTH, GUESSES, NEW_TOKENS = 12, 32, 3, 48


def _target(name: str) -> Raw:
    return {**SHRUNK[name], "vocab_size": VOCABULARY, "vocab_size_per_layer_input": VOCABULARY, "eos_token_id": [1]}


def _drafter(target: Raw, kind: str, **more: object) -> Raw:
    """A drafter of four layers, with the heads of its target, and half of its width."""
    of_target = (
        "attention_k_eq_v", "global_head_dim", "head_dim", "num_attention_heads", "num_global_key_value_heads",
        "num_key_value_heads", "rope_parameters", "sliding_window", "vocab_size", "hidden_activation", "rms_norm_eps",
    )  # fmt: skip
    text = {
        **{name: target[name] for name in of_target},
        "model_type": f"{kind}_text",
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 4,
        "num_kv_shared_layers": 4,
        "layer_types": [LOCAL, LOCAL, LOCAL, GLOBAL],
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "enable_moe_block": False,
        "use_double_wide_mlp": False,
        "max_position_embeddings": 512,
    }
    return {
        "model_type": f"{kind}_assistant",
        "backbone_hidden_size": WIDTH,
        "tie_word_embeddings": True,
        "text_config": text,
        **more,
    }


_E4B, _12B = _target("gemma-4-e4b"), _target("gemma-4-12b")
TARGETS: Mapping[str, Raw] = {"grouped tokens": _E4B, "every token": _12B}
DRAFTERS: Mapping[str, Raw] = {
    "grouped tokens": _drafter(
        _E4B, "gemma4", use_ordered_embeddings=True, num_centroids=4, centroid_intermediate_top_k=2
    ),
    "every token": _drafter(_12B, "gemma4_unified", use_ordered_embeddings=False),
}


def prompt(seed: int) -> list[int]:
    """The tokens of a prompt, longer than a window."""
    return [2, *(3 + (seed * 7 + place * place * 5) % (VOCABULARY - 3) for place in range(18 + seed))]
