"""The form of a product, by its number of rows."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.kernels.products import MOST_ROWS
from langchain_gemma_jax.models.seams.block_forms import FEW_ROWS, BlockForm, BlockForms

SUMS, KERNEL, TILES, WHOLE = BlockForm.SUMS, BlockForm.KERNEL, BlockForm.TILES, BlockForm.WHOLE


@pytest.mark.parametrize(
    ("few", "activations", "borders"),
    [
        (TILES, "float32", {1: SUMS, 2: TILES, FEW_ROWS: TILES, FEW_ROWS + 1: WHOLE}),
        (KERNEL, "float32", {1: SUMS, 2: KERNEL, MOST_ROWS: KERNEL, MOST_ROWS + 1: WHOLE}),
        (KERNEL, "int8", {1: SUMS, 2: KERNEL, MOST_ROWS + 1: KERNEL}),  # all counts by the same code
    ],
)
def test_a_form_is_for_one_row_for_few_or_for_more(few, activations, borders):
    forms = BlockForms(SUMS, few, WHOLE, activations)
    assert {rows: forms.form(rows) for rows in borders} == borders


def test_only_kernels_that_round_are_said_to():
    assert BlockForms(KERNEL, activations="int8").rounds_by_kernel
    assert not BlockForms(KERNEL).rounds_by_kernel
    assert not BlockForms(TILES, activations="int8").rounds_by_kernel
