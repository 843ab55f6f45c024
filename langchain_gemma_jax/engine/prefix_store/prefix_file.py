"""A prefix file: a model's keys and values of the first tokens of a context, with digests.

    magic (8 bytes) | length of the header (4) | header (JSON) | proof of all that (32) | blocks, one after the other

A block is one array. The header has the digest of each, so flipped bits and truncated files are detected, and a part
can be read without the rest. The file has no tokens and no scope, only digests of them: a *mark* names a length that
can be continued from, by the digest of model, scope and all tokens up to there (``prefix_names``).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.prefix_store.sealing import Sealing
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES, numpy_dtype
from langchain_gemma_jax.private.folder import DamagedError

MAGIC = b"GJXPRE4\n"
HEAD = 2**16  # bytes at the beginning of a file, enough for most headers
LARGEST_HEADER = 2**24
_START = len(MAGIC) + 4
_DIGEST = 32


@dataclass(frozen=True)
class Mark:
    """A length that can be continued from."""

    digest: bytes  # of the model, the scope, and the tokens up to there
    length: int
    ring: int | None  # the index of its state of the local layers; None: there are none


@dataclass(frozen=True)
class PrefixHeader:
    """The header of a prefix file."""

    family: str  # a digest of the model and everything that its numbers depend on: see ``prefix_names``
    label: str  # for people
    seconds: float  # to read a token on the machine that wrote it
    tokens: int  # slots of the global layers
    dtype: str  # of the blocks
    marks: tuple[Mark, ...]
    shapes: tuple[tuple[int, ...], ...]  # of the blocks: the global layers' keys and values, then each state's
    globals: int  # the number of the global layers' blocks
    global_dtype: str = ""  # of these, if it is another one
    proofs: tuple[bytes, ...] = ()
    salt: bytes = b""
    digest: bytes = b""  # of the header itself, if it was read from a file
    size: int = 0  # bytes before the first block

    def blocks_of(self, mark: Mark) -> range:
        """Return the indices of a mark's ring blocks."""
        if mark.ring is None:
            return range(0)
        states = len({each.ring for each in self.marks} - {None})
        each = (len(self.shapes) - self.globals) // states
        first = self.globals + mark.ring * each
        return range(first, first + each)

    def dtype_of(self, block: int) -> np.dtype[np.generic]:
        """Return the dtype of a block."""
        return numpy_dtype(self.global_dtype if self.global_dtype and block < self.globals else self.dtype)

    def nbytes(self, blocks: Sequence[int]) -> int:
        """Return the bytes of some blocks' arrays."""
        return sum(prod(self.shapes[index]) * self.dtype_of(index).itemsize for index in blocks)


def packed(
    header: PrefixHeader, blocks: Sequence[npt.NDArray[np.generic]], sealing: Sealing
) -> list[bytes | memoryview]:
    """Return the parts of the file, to be written one after the other."""
    raw = [_bytes_of(block) for block in blocks]
    salt = sealing.salt()
    text = json.dumps(
        {
            "family": header.family,
            "label": header.label,
            "seconds": header.seconds,
            "tokens": header.tokens,
            "dtype": header.dtype,
            "marks": [[mark.digest.hex(), mark.length, mark.ring] for mark in header.marks],
            "shapes": header.shapes,
            "globals": header.globals,
            "global_dtype": header.global_dtype,
            "proofs": [sealing.proof(block).hex() for block in raw],
            "salt": salt.hex(),
        },
        separators=(",", ":"),
    ).encode()
    head = MAGIC + len(text).to_bytes(4, "big") + text
    digest = sealing.head(head)
    return [head, digest, *(sealing.seal(block, index, salt, digest) for index, block in enumerate(raw))]


def header_bytes(data: bytes | memoryview) -> int:
    """Return the bytes of a file's header, from the file's beginning.

    Raises:
        DamagedError: this is no prefix file.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < _START:
        raise DamagedError("it does not begin as a prefix file does")
    length = int.from_bytes(data[len(MAGIC) : _START], "big")
    if length > LARGEST_HEADER:
        raise DamagedError(f"its header says that it has {length} bytes")
    return _START + length + _DIGEST


def read_header(data: bytes | memoryview, sealing: Sealing | None) -> PrefixHeader:
    """Return the header in the first bytes of a file.

    ``sealing`` proves it. None: it is only shown to people, who may not have the key.

    Raises:
        DamagedError: the bytes differ from what was written.
    """
    size = header_bytes(data)
    digest = bytes(data[size - _DIGEST : size])
    proven = sealing is None or hmac.compare_digest(sealing.head(memoryview(data)[: size - _DIGEST]), digest)
    if len(data) < size or not proven:
        raise DamagedError("the digest of its header does not match")
    try:
        fields = json.loads(bytes(data[_START : size - _DIGEST]))
        header = PrefixHeader(
            family=str(fields["family"]),
            label=str(fields["label"]),
            seconds=float(fields["seconds"]),
            tokens=int(fields["tokens"]),
            dtype=str(fields["dtype"]),
            marks=tuple(
                Mark(bytes.fromhex(digest), int(length), None if ring is None else int(ring))
                for digest, length, ring in fields["marks"]
            ),
            shapes=tuple(tuple(int(size) for size in shape) for shape in fields["shapes"]),
            globals=int(fields["globals"]),
            global_dtype=str(fields["global_dtype"]),
            proofs=tuple(bytes.fromhex(proof) for proof in fields["proofs"]),
            salt=bytes.fromhex(fields["salt"]),
            digest=digest,
            size=size,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedError("its header cannot be read") from error
    negative = any(size < 0 for shape in header.shapes for size in shape)
    known = header.dtype in {*ITEM_BYTES, "int32"} and header.global_dtype in {"", "int8"}
    if not known or len(header.proofs) != len(header.shapes) or negative:
        raise DamagedError("its header contradicts itself")
    return header


def places(header: PrefixHeader, sealing: Sealing) -> list[tuple[int, int]]:
    """Return each block's offset in the file and its bytes there."""
    found, at = [], header.size
    for index in range(len(header.shapes)):
        size = header.nbytes([index]) + sealing.growth
        found.append((at, size))
        at += size
    return found


def block_array(header: PrefixHeader, index: int, block: memoryview) -> npt.NDArray[np.generic]:
    """Return the array of a block."""
    return np.frombuffer(block, header.dtype_of(index)).reshape(header.shapes[index])


def _bytes_of(array: npt.NDArray[np.generic]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
