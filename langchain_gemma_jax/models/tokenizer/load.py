"""Finds a model's tokenizer and reads it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object, short
from langchain_gemma_jax.models.tokenizer.interface import Tokenizer
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.vocabulary import Ends

MAX_BYTES = 1 << 28  # eight times Gemma's; the libraries need the whole file in memory
_EXPECTED = "a folder with a tokenizer.json or a tokenizer.model"


def load_tokenizer(folder: Path, *, may_lack_bos: bool = False) -> Tokenizer:
    """Load the tokenizer of the model in ``folder``.

    It is the folder's ``tokenizer.json``, or else its ``tokenizer.model`` (any single ``*.model``), or else
    that of the parent folder, which is the layout of Google's Orbax downloads. ``may_lack_bos``: the vocabulary may
    have no bos token; then ``bos_id`` is the end of the text.

    Raises:
        TokenizerError: there is no tokenizer, or it cannot be used.
    """
    path, data, ends = _find(folder)
    if ends is not None and may_lack_bos:
        ends = replace(ends, may_lack_bos=True)
    with only_tokenizer_errors(folder, _EXPECTED):
        if ends is not None:
            from langchain_gemma_jax.models.tokenizer.hf_json import HfJsonTokenizer

            return HfJsonTokenizer(path, data, ends)
        from langchain_gemma_jax.models.tokenizer.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer(path, data)


def tokenizer_digest(folder: Path) -> bytes:
    """Return a digest of all that the tokenizer in a folder is read from: equal for equal tokenizers.

    Raises:
        TokenizerError: there is no tokenizer.
    """
    _, data, ends = _find(folder)
    return hashlib.sha256(repr(ends).encode() + b"\0" + data).digest()


def _find(folder: Path) -> tuple[Path, bytes, Ends | None]:
    """Return the file, its content, and for a ``tokenizer.json`` the special tokens of ``tokenizer_config.json``."""
    around = folder.resolve().parent  # of the folder itself, not of a link to it; "." has no parent else
    with only_tokenizer_errors(folder, _EXPECTED):
        if os.path.lexists(folder / "tokenizer.json"):
            return folder / "tokenizer.json", _read(folder, "tokenizer.json"), _ends(folder)
        for place in (folder, around):
            if (name := _sentencepiece_name(place)) is not None:
                return place / name, _read(place, name), None
    raise TokenizerError(
        folder,
        "a tokenizer.json or a tokenizer.model",
        "neither, and no tokenizer.model in the folder around it" if folder.is_dir() else "no such folder",
        "Both come with the model; copy one of them next to the weights.",
    )


def _sentencepiece_name(folder: Path) -> str | None:
    if os.path.lexists(folder / "tokenizer.model"):
        return "tokenizer.model"
    names = sorted(path.name for path in folder.glob("*.model"))
    if len(names) > 1:
        found = f"{len(names)} files that it could be: {short(names)}"
        raise TokenizerError(folder, "one SentencePiece model", found, "Rename the right one to tokenizer.model.")
    return names[0] if names else None


def _read(folder: Path, name: str) -> bytes:
    path = real_file(folder, name)
    size = path.stat().st_size
    if not 0 < size <= MAX_BYTES:  # sentencepiece takes an empty file for "no model given"
        raise TokenizerError(folder / name, f"between 1 and {MAX_BYTES:,} bytes", f"{size:,} bytes")
    return path.read_bytes()


def _ends(folder: Path) -> Ends:
    """Return the names of bos, eos and padding in ``tokenizer_config.json``; defaults if it is absent or lacks them."""
    shown = folder / "tokenizer_config.json"
    if not os.path.lexists(shown):
        return Ends()
    config = read_object(real_file(folder, shown.name), shown)
    named = {}
    for end in ("bos", "eos", "pad"):
        value = config.get(f"{end}_token")
        if isinstance(value, dict):  # in older files, with flags for matching
            value = value.get("content")
        if value is not None and not isinstance(value, str):
            raise TokenizerError(shown, f"a string as {end}_token", short(value))
        if value:
            named[end] = value
    return Ends.of(named)
