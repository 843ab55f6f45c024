"""Writes the grids of GGUF's formats of one to three bits, from the constants of the ``gguf`` package.

    python scripts/block_grids.py

The package is no dependency of ours, and its grids are facts of the format: numbers, which have to be at hand where a
model is read. They go to one module of Python and one header of C++, each number of a row in two or three bits.
"""

from __future__ import annotations

import base64
import textwrap
from pathlib import Path
from typing import Any

import gguf
import numpy as np

PACKAGE = Path(__file__).parents[1] / "langchain_gemma_jax"
PYTHON, HEADER = PACKAGE / "models" / "packed" / "grids.py", PACKAGE / "kernels" / "native" / "grids.h"
KINDS = ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")  # IQ1_M has that of IQ1_S

_MODULE = '''"""The grids of formats whose codes are rows of them, written by ``scripts/block_grids.py``.

Facts of these formats, taken from the ``gguf`` package. A row's numbers have two bits each, or three where a row is of
four numbers: places in the list of the numbers that occur.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class _Grid(NamedTuple):
    lanes: int  # numbers of a row
    numbers: tuple[int, ...]  # that occur
    packed: str  # the rows


@cache  # made when a file needs it: few do, and every import of the formats would wait
def grid(kind: str) -> npt.NDArray[np.float32]:
    """Return the rows of a format's grid: ``[row, lane]``."""
    lanes, numbers, packed = _PACKED[kind]
    rows = np.frombuffer(base64.b85decode(packed), "<u2")
    bits = 2 if lanes == 8 else 3
    places = (rows[:, None] >> (bits * np.arange(lanes))) & ((1 << bits) - 1)
    found: npt.NDArray[np.float32] = np.array(numbers, np.float32)[places]
    return found


_PACKED: Mapping[str, _Grid] = {{
{grids}
}}
'''

_CPP = """// The grids of formats whose codes are rows of them, written by scripts/block_grids.py from the gguf package.
//
// A row's numbers have two bits each, or three where a row is of four numbers: places in the list of those that occur.
#pragma once

#include <stdint.h>

{grids}
"""


def packed(kind: str) -> tuple[int, tuple[int, ...], np.ndarray]:
    """Return the numbers of a row, the numbers that occur, and the rows in two bytes each."""
    cls: Any = gguf.quants._type_traits[gguf.GGMLQuantizationType[kind]]  # noqa: SLF001  nothing public gives a grid
    cls.init_grid()
    grid = np.asarray(cls.grid, np.int64).reshape(cls.grid_shape)
    numbers, lanes = cls.grid_map, cls.grid_shape[1]
    places = np.searchsorted(np.array(numbers), grid)
    bits = 2 if lanes == 8 else 3
    return lanes, tuple(map(int, numbers)), (places << (bits * np.arange(lanes))).sum(-1).astype("<u2")


def python() -> str:
    """Return the text of the module."""
    grids = []
    for kind in KINDS:
        lanes, numbers, rows = packed(kind)
        lines = textwrap.wrap(base64.b85encode(rows.tobytes()).decode(), 104, break_on_hyphens=False)
        text = "\n".join(f'        "{line}"' for line in lines)
        grids.append(f'    "{kind}": _Grid(\n        {lanes},\n        {numbers},\n{text},\n    ),')
    return _MODULE.format(grids="\n".join(grids))


def header() -> str:
    """Return the text of the header."""
    grids = []
    for kind in KINDS:
        lanes, numbers, rows = packed(kind)
        size = 8 if lanes == 8 else 4
        lines = textwrap.fill(", ".join(map(str, rows.tolist())), 116, initial_indent="    ", subsequent_indent="    ")
        listed = ", ".join(map(str, numbers))
        grids.append(
            f"constexpr int8_t NUMBERS_{kind}[{len(numbers)}] = {{{listed}}};\n"
            f"constexpr uint16_t ROWS_{kind}[{len(rows)}] = {{  // of {size} numbers\n{lines}}};\n"
        )
    return _CPP.format(grids="\n".join(grids))


if __name__ == "__main__":
    PYTHON.write_text(python(), encoding="utf-8")
    HEADER.write_text(header(), encoding="utf-8")
