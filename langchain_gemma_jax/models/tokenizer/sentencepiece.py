"""``tokenizer.model``, read with the ``sentencepiece`` library; or its pieces from another file, with the kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np

from langchain_gemma_jax.kernels.spelling import speller
from langchain_gemma_jax.models.tokenizer.control import MARKERS, is_marker
from langchain_gemma_jax.models.tokenizer.interface import Tokenizer
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.pieces import SPACE, spaced_piece
from langchain_gemma_jax.models.tokenizer.sentencepiece_model import (
    PieceType,
    SentencePieces,
    piece_types,
    with_control_pieces,
)
from langchain_gemma_jax.models.tokenizer.vocabulary import Ends, Vocabulary

_MARKER_TYPES = (PieceType.CONTROL, PieceType.UNKNOWN)


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model, as Google publishes Gemma's; or the pieces of one from another file."""

    def __init__(self, path: Path, model: bytes | SentencePieces) -> None:
        with only_tokenizer_errors(path, "a SentencePiece model"):
            known = _inside(model) if isinstance(model, bytes) else model
            names, types = known.names, known.types.tolist()
            special = np.flatnonzero(known.types != int(PieceType.NORMAL)).tolist()
            plain = MARKERS.intersection(names) - {names[token_id] for token_id in special}
            special += [names.index(name) for name in plain]
            marker_ids = [token_id for token_id in special if _is_marker(names[token_id], types[token_id])]
            markers = {names[token_id].replace(SPACE, " "): token_id for token_id in marker_ids}
            ends = {"bos": known.bos_id, "eos": known.eos_id, "pad": known.pad_id}
            vocabulary = Vocabulary.of(
                path,
                _bytes_of(known),
                markers,
                Ends.of({end: names[token_id] for end, token_id in ends.items() if token_id >= 0}),
            )
            # In this copy of the model all markers are of the kind that is never found in a text.
            findable = {i for i in marker_ids if types[i] not in _MARKER_TYPES}
            if isinstance(model, bytes):
                self._ids = _library(with_control_pieces(model, findable))
            else:
                self._ids = _own_code(model, vocabulary, findable) or _library(model.message(findable))
        super().__init__(path, vocabulary)

    def _spell(self, text: str) -> Sequence[int]:
        return self._ids(text)


def _library(proto: bytes) -> Callable[[str], Sequence[int]]:
    """Return the library's function from text to ids."""
    from sentencepiece import SentencePieceProcessor

    encode: Callable[[str], Sequence[int]] = SentencePieceProcessor(model_proto=proto).encode
    return encode


def _own_code(
    known: SentencePieces, vocabulary: Vocabulary, findable: Collection[int]
) -> Callable[[str], Sequence[int]] | None:
    """Return the kernels' function from text to ids. None: they do not run here, or this is no vocabulary of Gemma's.

    The ids are the library's. They come from the vocabulary that is in memory anyway: the library makes copies of it.
    """
    of_bytes = np.full(256, -1, np.int32)
    for token_id in np.flatnonzero(known.types == int(PieceType.BYTE)).tolist():
        of_bytes[vocabulary.pieces[token_id][0]] = token_id
    if of_bytes.min() < 0 or not known.parted or b" " in known.joined or SPACE not in known.names:
        return None
    kinds = known.types.copy()
    kinds[list(findable)] = int(PieceType.CONTROL)
    ends = np.frombuffer(vocabulary.pieces.bounds, np.uint32)[1:]
    made = speller(vocabulary.pieces.joined, ends, known.scores, kinds, of_bytes)
    if made is None:
        return None
    ids = made.ids
    return lambda text: ids(text.replace(SPACE, " ").encode())  # the library cannot tell the two apart either


def _inside(model: bytes) -> SentencePieces:
    """Return the pieces of a model, without their scores, which only the library needs."""
    from sentencepiece import SentencePieceProcessor

    library = SentencePieceProcessor(model_proto=model)
    ids = library.unk_id(), library.bos_id(), library.eos_id(), library.pad_id()  # -1: the model has none
    names: list[str] = library.id_to_piece(list(range(library.vocab_size())))
    return SentencePieces(names, np.empty(0, np.float32), np.array(piece_types(model), np.uint8), *ids)


def _is_marker(name: str, kind: int) -> bool:
    if kind == PieceType.USER_DEFINED:
        return is_marker(name.replace(SPACE, " "), special=False)
    return kind in _MARKER_TYPES or name in MARKERS


def _bytes_of(known: SentencePieces) -> list[bytes]:
    """Return the bytes of each piece. A Gemma has 262,144 of them, so all names are converted at once."""
    if known.parted:
        pieces = known.joined.replace(SPACE.encode(), b" ").split(b"\0")
    else:
        pieces = [name.replace(SPACE, " ").encode() for name in known.names]
    for token_id in np.flatnonzero(known.types == int(PieceType.BYTE)).tolist():
        pieces[token_id] = spaced_piece(known.names[token_id])
    return pieces
