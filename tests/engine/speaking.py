"""A tiny random model whose vocabulary has the control tokens of a chat format."""

from __future__ import annotations

import json
from pathlib import Path

from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.tiny_gemma import tiny_gemma

CONTROLS = (
    *("<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'),
    *("<|channel>", "<channel|>", "<start_function_call>", "<end_function_call>", "<escape>"),
)


def speaking(model: Model, folder: Path) -> Model:
    """The same weights, and control tokens in place of the last letters: it runs what is compiled for the other."""
    content = json.loads(tiny_gemma()["tokenizer.json"])
    vocab = content["model"]["vocab"]
    letters = sorted(vocab, key=vocab.__getitem__)[-len(CONTROLS) :]
    assert letters[-1] == "Z"
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for letter, name in zip(letters, CONTROLS, strict=True):
        vocab[name] = vocab.pop(letter)
        content["added_tokens"].append({"id": vocab[name], "content": name} | how)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<bos>", "eos_token": "<eos>"}))
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocab_size == model.tokenizer.vocab_size
    return Model(model.architecture, model.params, tokenizer, model.recipe, f"{model.name}, speaking")
