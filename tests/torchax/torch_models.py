"""Shrunk models of published families with random weights, as folders, and what torch says of them."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

LIBRARIES = ("torch", "transformers", "torchax")
needs_torch = pytest.mark.skipif(
    any(find_spec(name) is None for name in LIBRARIES),
    reason=f"needs {', '.join(LIBRARIES)}: scripts/torchax installs them in an environment of their own",
)

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
_TEXTS = [
    'The weather in Paris is {"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}} and so on.',
    "A model reads words, and then it says what comes next; a tool gives it what it does not know.",
] * 4

COMMON = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": None, "eos_token_id": 2,
    "pad_token_id": 0, "use_cache": True,
}  # fmt: skip
_LLAMA_ROPE = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
_LONG_ROPE = {
    "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.1, 1.2, 1.3, 1.4, 1.5, 1.6],
    "long_factor": [2.0] * 6, "original_max_position_embeddings": 256,
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama 3": ("LlamaConfig", {"rope_parameters": _LLAMA_ROPE}),
    "qwen 2.5": ("Qwen2Config", {"tie_word_embeddings": True}),
    "qwen 3": ("Qwen3Config", {"head_dim": 32}),
    "gemma 2": ("Gemma2Config", {"head_dim": 16, "sliding_window": 24, "query_pre_attn_scalar": 16}),
    "gemma 3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 24, "query_pre_attn_scalar": 16}),
    "mistral": ("MistralConfig", {"sliding_window": 20, "head_dim": 16}),
    "smollm 3": ("SmolLM3Config", {"num_hidden_layers": 4}),
    "phi 4": ("Phi3Config", {"partial_rotary_factor": 0.75, "rope_parameters": _LONG_ROPE}),
    "granite": (
        "GraniteConfig",
        {"embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2},
    ),
    "qwen 3 moe": ("Qwen3MoeConfig", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
}
FIRST = ("llama 3", "qwen 2.5", "qwen 3", "gemma 2", "gemma 3")

TEMPLATE = Path(__file__).with_name("chatml.jinja")


def save_tokenizer(folder: Path) -> None:
    """A byte-level tokenizer as Llama 3 and Qwen have them: no begin of a text, and control tokens of chats."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    split = pre_tokenizers.Split(tokenizers.Regex(LLAMA_3), "isolated")
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(CONTROLS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"bos_token": null, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}'
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE.read_text())


def save_model(folder: Path, family: str, seed: int = 0) -> Any:
    """Write a random model of a family, and return torch's."""
    kind, own = FAMILIES[family]
    return save_random(folder, kind, {**COMMON, **own}, seed, norms_around_one="gemma" not in family)


def save_random(folder: Path, kind: str, sizes: dict[str, Any], seed: int = 0, *, norms_around_one: bool = True) -> Any:
    """Write a random model of one of transformers' configurations, and return torch's."""
    import torch
    import transformers

    torch.set_num_threads(1)  # these models are so small that its threads would only wait for each other
    save_tokenizer(folder)
    vocabulary = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    config = getattr(transformers, kind)(**{"vocab_size": vocabulary + 7, **sizes})
    torch.manual_seed(seed)
    module = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.25 * torch.randn_like(parameter) + float(parameter.ndim == 1 and norms_around_one))
    module.eval().save_pretrained(folder)
    return module


def scores(module: Any, ids: list[int]) -> np.ndarray:
    """Return torch's scores after each token, without a cache."""
    import torch

    with torch.no_grad():
        found: np.ndarray = module(torch.tensor([ids])).logits[0].numpy()
    return found


def greedy_by_torch(module: Any, prompt: list[int], count: int, valid: int) -> list[int]:
    """Return torch's answer, by whole passes without a cache: ids from ``valid`` on are no tokens."""
    said = list(prompt)
    for _ in range(count):
        said.append(int(scores(module, said)[-1, :valid].argmax()))
    return said[len(prompt) :]


def text(rng: random.Random, length: int) -> list[int]:
    """Some tokens."""
    return [rng.randrange(10, 340) for _ in range(length)]
