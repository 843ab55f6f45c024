"""``tokenizer.model``, read with the ``sentencepiece`` library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from langchain_gemma_jax.models.tokenizer.control import MARKERS, is_marker
from langchain_gemma_jax.models.tokenizer.files.sentencepiece_model import PieceType, piece_types, with_control_pieces
from langchain_gemma_jax.models.tokenizer.interface import Tokenizer
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.pieces import SPACE, spaced_piece
from langchain_gemma_jax.models.tokenizer.vocabulary import Ends, Vocabulary

_MARKER_TYPES = (PieceType.CONTROL, PieceType.UNKNOWN)


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model, as Google publishes Gemma's."""

    def __init__(self, path: Path, data: bytes) -> None:
        with only_tokenizer_errors(path, "a SentencePiece model"):
            library = SentencePieceProcessor(model_proto=data)
            names: list[str] = library.id_to_piece(list(range(library.vocab_size())))
            pieces = list(enumerate(zip(names, piece_types(data), strict=True)))
            markers = {
                name.replace(SPACE, " "): token_id for token_id, (name, kind) in pieces if _is_marker(name, kind)
            }
            spelt = {token_id: _bytes(name, kind) for token_id, (name, kind) in pieces}
            vocabulary = Vocabulary.of(path, spelt, markers, _ends(library))
            # In this one all the markers are of the kind that is never found in a text.
            findable = {token_id for token_id, (name, kind) in pieces if kind not in _MARKER_TYPES and name in markers}
            self._text = SentencePieceProcessor(model_proto=with_control_pieces(data, findable))
        super().__init__(path, vocabulary)

    def _spell(self, text: str) -> Sequence[int]:
        ids: list[int] = self._text.encode(text)
        return ids


def _is_marker(name: str, kind: PieceType) -> bool:
    if kind == PieceType.USER_DEFINED:
        return is_marker(name.replace(SPACE, " "), special=False)
    return kind in _MARKER_TYPES or name in MARKERS


def _bytes(name: str, kind: PieceType) -> bytes:
    return spaced_piece(name) if kind == PieceType.BYTE else name.replace(SPACE, " ").encode()


def _ends(library: SentencePieceProcessor) -> Ends:
    """Return the ends as the model names them; it has -1 for those that it does not have."""
    ids = {"bos": library.bos_id(), "eos": library.eos_id(), "pad": library.pad_id()}
    return Ends(**{end: library.id_to_piece(token_id) for end, token_id in ids.items() if token_id >= 0})
