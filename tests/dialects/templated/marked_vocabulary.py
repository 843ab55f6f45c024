"""Vocabularies of bytes, with control tokens as other families than Gemma have them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer

END = "<|im_end|>"


def vocabulary(marks: Sequence[str]) -> Tokenizer:
    """A vocabulary whose control tokens are these, and the end of a turn."""
    markers = [END, *marks]
    names = [*markers, *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    content = {
        "added_tokens": [{"id": number, "content": marker} | how for number, marker in enumerate(markers)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "decoder": {"type": "Sequence", "decoders": steps},
        "model": {
            "type": "BPE",
            "byte_fallback": True,
            "merges": [],
            "vocab": {name: number for number, name in enumerate(names)},
        },
    }
    with TemporaryDirectory() as folder:
        Path(folder, "tokenizer.json").write_text(json.dumps(content), "utf-8")
        Path(folder, "tokenizer_config.json").write_text(json.dumps({"eos_token": END}))
        return load_tokenizer(Path(folder), may_lack_bos=True)
