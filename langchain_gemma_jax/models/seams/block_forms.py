"""The ways to multiply by a matrix in blocks, and one machine's choice among them."""

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
    """One machine's choice of how to multiply by matrices in blocks, by the number of rows."""

    one_row: BlockForm = BlockForm.TILES
    few_rows: BlockForm = BlockForm.TILES  # 2 to ``FEW_ROWS``
    more_rows: BlockForm = BlockForm.TILES
    activations: str = "float32"  # or "int8": they are rounded first, for any number of rows

    def form(self, rows: int) -> BlockForm:
        """Return the form of a product with ``rows`` rows."""
        if rows == 1:
            return self.one_row
        # Rounding amplifies a difference in the last bit, so all row counts have to use the same code.
        if self.activations == "int8" and self.few_rows is BlockForm.KERNEL and rows > 0:
            return self.few_rows
        few = MOST_ROWS if self.few_rows is BlockForm.KERNEL else FEW_ROWS
        return self.few_rows if rows <= few else self.more_rows

    @property
    def rounds_by_kernel(self) -> bool:
        """True if kernels round activations to eight bits, which amplifies a difference in the last bit."""
        return self.activations == "int8" and self.one_row is BlockForm.KERNEL


DEFAULT = BlockForms()
