"""A vocabulary of bytes and all of Gemma's control tokens, read as a checkpoint's is."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer
from langchain_gemma_jax.models.tokenizer.control import MARKERS

CONTROL = ("<pad>", "<eos>", "<bos>", "<unk>", *sorted(MARKERS - {"<pad>", "<eos>", "<bos>", "<unk>"}))
OTHERS = ("[multimodal]", "<unused7>", "[toxicity=0]")


@cache
def tokenizer() -> Tokenizer:
    """One for all tests."""
    markers = [*CONTROL, *OTHERS]
    names = [*markers, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content = {
        "added_tokens": [{"id": number, "content": marker} | how for number, marker in enumerate(markers)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "byte_fallback": True,
            "merges": [],
            "vocab": {name: number for number, name in enumerate(names)},
        },
    }
    with TemporaryDirectory() as folder:
        Path(folder, "tokenizer.json").write_text(json.dumps(content), "utf-8")
        return load_tokenizer(Path(folder))
