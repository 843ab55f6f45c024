"""A tiny random model whose vocabulary has the control tokens of a chat format."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers

from langchain_gemma_jax.models.model import Model
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.tiny_gemma import tiny_gemma

CONTROLS = (
    *("<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'),
    *("<|channel>", "<channel|>", "<start_function_call>", "<end_function_call>", "<escape>"),
)


def speaking(model: Model, folder: Path) -> Model:
    """The same weights with another vocabulary, of the same size at most."""
    library = tokenizers.Tokenizer.from_str(tiny_gemma()["tokenizer.json"].decode())
    library.add_special_tokens(list(CONTROLS))
    (folder / "tokenizer.json").write_text(library.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<bos>", "eos_token": "<eos>"}))
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocab_size <= model.config.vocab_size
    return Model(model.config, model.params, tokenizer, model.recipe, f"{model.name}, speaking")
