"""Text to token ids by the library's own code: merges of pairs, in the order of their scores.

SentencePiece keeps three copies of a vocabulary in memory, 45 MB for Gemma's. This code reads the package's one copy.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.kernels.library import kernels


class Speller:
    """A vocabulary with scores, to spell texts with. Any number of threads may use one."""

    def __init__(
        self,
        code: ctypes.CDLL,
        pieces: bytes,
        ends: npt.NDArray[np.uint32],
        scores: npt.NDArray[np.float32],
        kinds: npt.NDArray[np.uint8],
        of_bytes: npt.NDArray[np.int32],
    ) -> None:
        """Index the pieces.

        Args:
            code: the library.
            pieces: of all ids, one after the other, in UTF-8.
            ends: of each piece in ``pieces``.
            scores: of each piece: the higher, the earlier it is merged.
            kinds: as SentencePiece numbers them. Texts are spelled with 1 (normal), 4 (always whole) and 5 (unused).
            of_bytes: the ids for single bytes, with which characters without a piece are spelled.
        """
        if not len(ends) == len(scores) == len(kinds) or (len(ends) and int(ends[-1]) != len(pieces)):
            raise ValueError(
                f"expected an end, a score and a kind for each piece, found {len(ends)}, {len(scores)}, {len(kinds)}"
            )
        arrays = [np.ascontiguousarray(array) for array in (ends, scores, kinds, of_bytes)]
        made = code.gemma_jax_speller
        made.restype = ctypes.c_void_p
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        handle = made(pieces, *addresses[:3], ctypes.c_int32(len(ends)), addresses[3])
        if not handle:
            raise MemoryError("there is no memory for the table of a vocabulary")
        self._handle = ctypes.c_void_p(handle)
        self._ends = weakref.finalize(self, _end, code, self._handle, (pieces, arrays))
        self._ends.atexit = False  # other threads may still spell then
        if (again := code.gemma_jax_speller_again(self._handle)) >= 0:
            raise ValueError(f"expected each piece once, found the piece {again} again")
        self._spell = code.gemma_jax_spell
        self._spell.restype = ctypes.c_int64

    def ids(self, text: bytes) -> list[int]:
        """Return the ids of a text in UTF-8."""
        out = np.empty(len(text), np.int32)
        count = self._spell(self._handle, text, ctypes.c_int64(len(text)), ctypes.c_void_p(out.ctypes.data))
        if count < 0:
            raise MemoryError("there is no memory to spell a text")
        ids: list[int] = out[:count].tolist()
        return ids


def speller(
    pieces: bytes,
    ends: npt.NDArray[np.uint32],
    scores: npt.NDArray[np.float32],
    kinds: npt.NDArray[np.uint8],
    of_bytes: npt.NDArray[np.int32],
) -> Speller | None:
    """Return a speller, as its class describes. None: the kernels do not run here."""
    code = kernels().code
    return None if code is None else Speller(code, pieces, ends, scores, kinds, of_bytes)


def _end(code: ctypes.CDLL, handle: ctypes.c_void_p, kept: object) -> None:
    """Free a speller's table. ``kept`` are the arrays that it reads, which live until then."""
    del kept
    code.gemma_jax_speller_end(handle)
