"""The content of a SentencePiece ``.model``: the type of each piece, and how to change it.

The ``sentencepiece`` library does not tell which pieces are user-defined, and the reader that it ships
works only with one release of ``protobuf``. The file is a protobuf message, of which little is needed:

    message ModelProto { repeated SentencePiece pieces = 1; ... }
    message SentencePiece { optional string piece = 1; optional float score = 2; optional Type type = 3; }

A message that is written here, for a vocabulary from another file, has two more entries: pairs of pieces are merged,
characters without a piece are written in bytes, and texts are not normalized:

    message ModelProto { ... optional TrainerSpec trainer_spec = 2; optional NormalizerSpec normalizer_spec = 3; }
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

_PIECES, _TYPE = 1, 3  # field numbers
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


class PieceType(IntEnum):
    """The type of a piece in the file."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3  # never found in a text
    USER_DEFINED = 4  # always one token where it is found in a text
    UNUSED = 5
    BYTE = 6


def piece_types(model: bytes) -> list[PieceType]:
    """Return the type of each piece, by id.

    Raises:
        ValueError: the bytes are not such a message.
        IndexError: they end in the middle of a message.
    """
    kinds = {int(kind): kind for kind in PieceType}
    types = []
    for number, start, end in _fields(model, 0, len(model)):
        if number == _PIECES:
            kind = PieceType.NORMAL
            for inner, value, _ in _fields(model, start, end):
                if inner == _TYPE:
                    kind = kinds.get(_varint(model, value)[0], kind)
            types.append(kind)
    return types


def with_control_pieces(model: bytes, ids: Collection[int]) -> bytes:
    """Return the model with the pieces of these ids changed to the type ``CONTROL``."""
    parts, copied = [], 0
    pieces = (span for span in _fields(model, 0, len(model)) if span[0] == _PIECES)
    for piece, (_, start, end) in enumerate(pieces):
        if piece in ids:
            message = model[start:end] + bytes([_TYPE << 3 | _VARINT, PieceType.CONTROL])  # the last entry is valid
            length_start = start - len(_as_varint(end - start))
            parts += [model[copied:length_start], _as_varint(len(message)), message]
            copied = end
    return b"".join([*parts, model[copied:]])


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the fields of the message in ``data[start:end]``: number, and begin and end of the value."""
    while start < end:
        # A number below 0x80 is one byte. Nearly all are, and this test makes reading three times faster.
        key, start = (data[start], start + 1) if data[start] < 0x80 else _varint(data, start)
        wire_type = key & 7
        if wire_type == _BYTES:
            length, start = (data[start], start + 1) if data[start] < 0x80 else _varint(data, start)
            value_end = start + length
        elif wire_type == _VARINT:
            value_end = _varint(data, start)[1]
        elif wire_type in _FIXED_SIZES:
            value_end = start + _FIXED_SIZES[wire_type]
        else:
            raise ValueError(f"a field with the wire type {wire_type}")
        if value_end > end:
            raise ValueError("a field that is longer than its message")
        yield key >> 3, start, value_end
        start = value_end


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """Return the number at ``start``, and its end."""
    value = shift = 0
    for at in range(start, start + 10):
        byte = data[at]
        if byte < 0x80:
            return value | byte << shift, at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
    raise ValueError("a number of more than 64 bits")


def _as_varint(value: int) -> bytes:
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


@dataclass(frozen=True)
class SentencePieces:
    """A vocabulary of Gemma's kind: its pieces with scores and types, and its special ids (-1: it has none)."""

    names: Sequence[str]
    scores: npt.NDArray[np.float32]
    types: npt.NDArray[np.uint8]  # as ``PieceType``
    unk_id: int
    bos_id: int
    eos_id: int
    pad_id: int

    @cached_property
    def joined(self) -> bytes:
        """The names in UTF-8, separated by zeros. All names are converted at once with it."""
        return "\0".join(self.names).encode()

    @property
    def parted(self) -> bool:
        """True if ``joined`` has zeros only between names: no name contains that character."""
        return self.joined.count(0) < max(1, len(self.names))

    def message(self, controls: Collection[int] = ()) -> bytes:
        """Return the content of a ``tokenizer.model`` with this vocabulary, these pieces changed to ``CONTROL``."""
        (lengths, text), types = self._measured(), self.types.copy()
        types[list(controls)] = int(PieceType.CONTROL)
        # A short piece is 0A, its length, 0A, the name's length, the name, 15, and four bytes of its score; then 18 and
        # its type, unless that is the normal one. A Gemma has 262,144 of them, so all are written at once.
        kind = np.where(types == int(PieceType.NORMAL), 0, 2)
        long = np.flatnonzero(lengths > _SHORT).tolist()
        apart = {at: _piece(self.names[at].encode(), self.scores[at], int(types[at])) for at in long}
        sizes = lengths + kind + 9
        sizes[long] = [len(piece) for piece in apart.values()]
        ends = np.cumsum(sizes)
        begins, out = ends - sizes, np.empty(int(sizes.sum()), np.uint8)
        for place, value in ((0, 10), (1, lengths + kind + 7), (2, 10), (3, lengths), (sizes - kind - 5, 21)):
            out[begins + place] = value
        for byte, column in enumerate(self.scores.astype("<f4").view(np.uint8).reshape(-1, 4).T):
            out[ends - kind - 4 + byte] = column
        others = ends[kind > 0]
        out[others - 2], out[others - 1] = _TYPE << 3 | _VARINT, types[kind > 0]
        is_name = np.zeros(len(out) + 1, np.int8)
        is_name[begins + 4] += 1
        is_name[begins + 4 + lengths] -= 1
        out[np.cumsum(is_name[:-1], dtype=np.int8).view(bool)] = text
        for at, piece in apart.items():
            out[begins[at] : ends[at]] = np.frombuffer(piece, np.uint8)
        parts = [out.tobytes()]
        trainer = _number(_MODEL_TYPE, _BPE) + _number(_BYTE_FALLBACK, 1) + _number(_VOCAB_SIZE, len(self.names))
        for field, token_id in zip(_ENDS, (self.unk_id, self.bos_id, self.eos_id, self.pad_id), strict=True):
            trainer += _number(field, token_id)
        parts.append(_field(_TRAINER, trainer))
        as_it_is = _field(_NORMALIZER_NAME, b"identity")
        parts.append(
            _field(_NORMALIZER, as_it_is + b"".join(_number(field, 0) for field in _TO_TEXTS) + _number(_ESCAPE, 1))
        )
        return b"".join(parts)

    def _measured(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Return the length of each name in bytes, and the bytes of all names."""
        if not self.parted:
            names = [name.encode() for name in self.names]
            return np.fromiter(map(len, names), np.int64, len(names)), np.frombuffer(b"".join(names), np.uint8)
        data = np.frombuffer(self.joined, np.uint8)
        return np.diff(np.flatnonzero(data == 0), prepend=-1, append=len(data)) - 1, data[data != 0]


_SHORT = 100  # bytes of a name: lengths up to 127 are one byte each
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _BPE, _VOCAB_SIZE, _BYTE_FALLBACK, _ENDS = 3, 2, 4, 35, (40, 41, 42, 43)
_NORMALIZER_NAME, _TO_TEXTS, _ESCAPE = 1, (3, 4), 5  # no space in front, no spaces removed; a space is U+2581


def _piece(name: bytes, score: float, kind: int) -> bytes:
    message = b"\x0a" + _as_varint(len(name)) + name + b"\x15" + struct.pack("<f", score)
    return _field(_PIECES, message if kind == PieceType.NORMAL else message + bytes([_TYPE << 3 | _VARINT, kind]))


def _field(number: int, message: bytes) -> bytes:
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(message)) + message


def _number(number: int, value: int) -> bytes:
    return _as_varint(number << 3 | _VARINT) + _as_varint(value % (1 << 64))
