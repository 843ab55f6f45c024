"""The tables of formats that look their numbers up are those of the formats' own package."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.models.packed.code_tables import E2M1, HALF_E4M3, HALF_E8M0, NOT_LINEAR
from langchain_gemma_jax.models.packed.grids import grid
from scripts import block_grids

BYTES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("kind", block_grids.KINDS)
def test_grids_are_the_packages(kind):
    theirs = getattr(gguf.quants, kind)
    theirs.init_grid()
    np.testing.assert_array_equal(grid(kind), theirs.grid.reshape(theirs.grid_shape))


def test_what_the_script_writes_is_what_is_there():
    assert block_grids.PYTHON.read_text(encoding="utf-8") == block_grids.python()
    assert block_grids.HEADER.read_text(encoding="utf-8") == block_grids.header()


def test_tables_of_sixteen_numbers_and_of_bytes_are_the_packages():
    assert tuple(NOT_LINEAR) == gguf.quants.IQ4_NL.kvalues
    assert tuple(E2M1) == gguf.quants.MXFP4.kvalues == gguf.quants.NVFP4.kvalues
    np.testing.assert_array_equal(HALF_E8M0, gguf.quants.MXFP4.e8m0_to_fp32_half(BYTES))
    np.testing.assert_array_equal(HALF_E4M3, gguf.quants.NVFP4.ue4m3_to_fp32(BYTES))
