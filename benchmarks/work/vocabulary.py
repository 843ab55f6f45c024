"""A tokenizer for weights that nobody trained: the replay's words have their tokens, and every other id some name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from benchmarks.work.replay import ANSWER, CONTEXT, pieces
from benchmarks.work.workload import VOCABULARY

_SPACE = "\u2581"
_SPECIAL = ("<pad>", "<eos>", "<bos>", "<unk>")
BOS = _SPECIAL.index("<bos>")


def encode(text: str) -> list[int]:
    """The tokens of a text that is made of the replay's words."""
    ids = _ids()
    return [ids[piece.replace(" ", _SPACE)] for piece in pieces(text)]


def write_tokenizer(folder: Path, size: int = VOCABULARY) -> None:
    """Put the tokenizer beside the weights in ``folder``; of a smaller one the last names are left out."""
    names = {name: number for name, number in _ids().items() if number < size}
    to_space = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
    content = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": name, "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for number, name in enumerate(_SPECIAL)
        ],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
        "decoder": {"type": "Sequence", "decoders": [to_space, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE",
            "vocab": names,
            "merges": [],
            "unk_token": "<unk>",
            "byte_fallback": True,
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False))


@cache
def _ids() -> Mapping[str, int]:
    words = sorted({piece.replace(" ", _SPACE) for text in (CONTEXT, ANSWER) for piece in pieces(text)})
    names = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    names += (f"t{number}{_SPACE}" for number in range(len(names), VOCABULARY))
    return {name: number for number, name in enumerate(names)}
