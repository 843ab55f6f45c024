"""The tokenizer in a GGUF file's metadata, rebuilt as the file that it was converted from.

There are two kinds. ``llama`` has pieces with scores and types, and is rebuilt as a SentencePiece model. ``gemma4``,
and ``gpt2`` for a Gemma that was converted without its SentencePiece model, have pieces and merges, and are rebuilt as
a ``tokenizer.json``. So the same libraries tokenize as for a folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.tokenizer.hf_json import HfJsonTokenizer
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.pieces import SPACE
from langchain_gemma_jax.models.tokenizer.sentencepiece import SentencePieceTokenizer
from langchain_gemma_jax.models.tokenizer.sentencepiece_model import PieceType, SentencePieces
from langchain_gemma_jax.models.tokenizer.vocabulary import MAX_TOKENS, Ends

_WITH_MERGES = ("gemma4", "gpt2")
MOST_MERGES = 8  # per token: Gemma 4 has two
_NOT_FOUND_IN_TEXTS = (PieceType.CONTROL, PieceType.UNKNOWN)


def gguf_tokenizer(metadata: Metadata, path: Path, rows: int = MAX_TOKENS) -> tuple[Tokenizer, bytes]:
    """Return the tokenizer, and a digest of all that it is made from. ``rows``: those of the embedding.

    Raises:
        TokenizerError: there is none, it is of another kind, or it cannot be used.
    """
    with only_tokenizer_errors(path, "a tokenizer in the metadata"):
        kind = metadata.text("tokenizer.ggml.model", "")
        if kind not in {"llama", *_WITH_MERGES}:
            expected = f"a tokenizer of the kind llama, {' or '.join(_WITH_MERGES)} in the metadata"
            raise TokenizerError(path, expected, short(kind) if kind else "none")
        if kind == "llama":
            pieces = sentence_pieces(metadata, path, rows)
            return SentencePieceTokenizer(path, pieces), _digest(pieces)
        names, types = _names(metadata, path, min(rows, MAX_TOKENS)), _types(metadata, path)
        if len(types) != len(names):
            raise TokenizerError(path, f"a type for each of the {len(names):,} tokens", f"{len(types):,}")
        data = _json(metadata, path, names, types)
        ends = _ends(metadata, path, names)
        return HfJsonTokenizer(path, data, ends), hashlib.sha256(repr(ends).encode() + data).digest()


def _names(metadata: Metadata, path: Path, most: int) -> list[str]:
    tokens = metadata.strings("tokenizer.ggml.tokens")
    if tokens is None or not 0 < len(tokens) <= most:
        what = "none" if tokens is None else f"{len(tokens):,}"
        raise TokenizerError(path, f"1 to {most:,} tokens in the metadata", what)
    return tokens.all()


def _types(metadata: Metadata, path: Path) -> npt.NDArray[np.uint8]:
    types = metadata.integers("tokenizer.ggml.token_type")
    if types is None:
        raise TokenizerError(path, "a list tokenizer.ggml.token_type in the metadata", "none")
    return np.where(np.isin(types, [int(kind) for kind in PieceType]), types, int(PieceType.NORMAL)).astype(np.uint8)


def sentence_pieces(metadata: Metadata, path: Path, rows: int = MAX_TOKENS) -> SentencePieces:
    """Return the vocabulary of a file of the kind ``llama``. ``rows``: those of the embedding.

    Raises:
        TokenizerError: it cannot be used.
    """
    names, types = _names(metadata, path, min(rows, MAX_TOKENS)), _types(metadata, path)
    scores = metadata.numbers("tokenizer.ggml.scores")
    if len(types) != len(names):
        raise TokenizerError(path, f"a type for each of the {len(names):,} tokens", f"{len(types):,}")
    if scores is None or len(scores) != len(names):
        shown = "none" if scores is None else f"{len(scores):,}"
        raise TokenizerError(path, f"a score for each of the {len(names):,} tokens", shown)
    if metadata.flag("tokenizer.ggml.add_space_prefix", default=False):
        raise TokenizerError(path, "a tokenizer that adds no space in front, as Gemma's", "add_space_prefix")
    # In user-defined pieces converters write spaces as spaces, where the library expects U+2581.
    for token_id in np.flatnonzero(types == int(PieceType.USER_DEFINED)).tolist():
        names[token_id] = names[token_id].replace(" ", SPACE)
    ids = [_id(metadata, path, name, len(names)) for name in ("unknown", "bos", "eos", "padding")]
    return SentencePieces(names, scores, types, *ids)


def _digest(pieces: SentencePieces) -> bytes:
    ids = pieces.unk_id, pieces.bos_id, pieces.eos_id, pieces.pad_id
    digest = hashlib.sha256(pieces.joined)
    for part in (pieces.scores.tobytes(), pieces.types.tobytes(), repr(ids).encode()):
        digest.update(part)
    return digest.digest()


def _json(metadata: Metadata, path: Path, names: Sequence[str], types: npt.NDArray[np.uint8]) -> bytes:
    merges = metadata.strings("tokenizer.ggml.merges")
    if merges is None or len(merges) > MOST_MERGES * len(names):
        expected = f"a list tokenizer.ggml.merges in the metadata, of at most {MOST_MERGES} a token"
        raise TokenizerError(path, expected, "none" if merges is None else f"{len(merges):,}")
    if "<0x00>" not in names:
        expected = "a Gemma's vocabulary, with the pieces <0x00> to <0xFF>"
        raise TokenizerError(path, expected, f"{len(names):,} tokens without them")
    spelled = [name.replace(" ", SPACE) for name in names]
    unknown = _id(metadata, path, "unknown", len(names))
    model = {
        "type": "BPE",
        "unk_token": names[unknown] if unknown >= 0 else None,
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": {name: token_id for token_id, name in enumerate(spelled)},
        "merges": [_merge(path, pair) for pair in merges.all()],
    }
    if len(model["vocab"]) != len(names):  # type: ignore[arg-type]
        raise TokenizerError(path, "each token once", f"{len(names) - len(model['vocab'])} of them again")  # type: ignore[arg-type]
    added = [
        {
            "id": token_id,
            "content": name,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in _NOT_FOUND_IN_TEXTS,
        }
        for token_id, (name, kind) in enumerate(zip(spelled, types.tolist(), strict=True))
        if kind in {*_NOT_FOUND_IN_TEXTS, PieceType.USER_DEFINED}
    ]
    content = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": model,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _merge(path: Path, pair: str) -> list[str]:
    first, space, second = pair.partition(" ")
    if not space or not first or not second:
        raise TokenizerError(path, "merges of two pieces with a space between them", short(pair))
    return [first, second]


def _ends(metadata: Metadata, path: Path, names: Sequence[str]) -> Ends:
    ids = {
        end: _id(metadata, path, key, len(names)) for end, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    return Ends.of({end: names[token_id] for end, token_id in ids.items() if token_id >= 0})


def _id(metadata: Metadata, path: Path, name: str, count: int) -> int:
    """Return the id of a special token; -1 if there is none."""
    token_id = metadata.whole(f"tokenizer.ggml.{name}_token_id", -1)
    if token_id is None or not -1 <= token_id < count:
        raise TokenizerError(path, f"tokenizer.ggml.{name}_token_id below {count:,}", short(token_id))
    return token_id
