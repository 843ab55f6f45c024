"""How matrices in blocks are multiplied: the ways, and the choice of one machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from langchain_gemma_jax.kernels.products import MOST_ROWS

FEW_ROWS = 8


class BlockForm(StrEnum):
    """One way to compute the product of a few rows with a matrix in blocks."""

    TILES = "tiles"  # tiles of the matrix, unpacked one after the other
    SUMS = "sums"  # multiplied and summed while it is unpacked, row by row: nothing dense at all
    KERNEL = "kernel"  # by the package's own code, where that runs; else in tiles
    WHOLE = "whole"  # unpacked as a whole: where the compiler puts the unpacking into the product itself


@dataclass(frozen=True)
class BlockForms:
    """How matrices in blocks are multiplied on one machine."""

    one_row: BlockForm = BlockForm.TILES
    few_rows: BlockForm = BlockForm.TILES  # 2 to ``FEW_ROWS``
    more_rows: BlockForm = BlockForm.TILES
    activations: str = "float32"  # or "int8": they are rounded first, for any number of rows

    def form(self, rows: int) -> BlockForm:
        """Return the form of a product with so many rows."""
        if rows == 1:
            return self.one_row
        # Rounding makes much of the last bits, which have to be the same for any number of rows.
        if self.activations == "int8" and self.few_rows is BlockForm.KERNEL and rows > 0:
            return self.few_rows
        few = MOST_ROWS if self.few_rows is BlockForm.KERNEL else FEW_ROWS
        return self.few_rows if rows <= few else self.more_rows

    @property
    def rounds_by_kernel(self) -> bool:
        """Return True if kernels round activations to eight bits, which makes much of a last bit."""
        return self.activations == "int8" and self.one_row is BlockForm.KERNEL


DEFAULT = BlockForms()
