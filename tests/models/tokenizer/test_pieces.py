from __future__ import annotations

import pytest

from langchain_gemma_jax.models.tokenizer.pieces import spaced_piece, spaced_pieces

NAMES = ["▁a", "<0x0A>", "<0xzz>", "<0x0A>b", "", "\n", "▁▁", "é", "<0xfF>", "a"]


@pytest.mark.parametrize("names", [NAMES, [*NAMES, "\0"], ["a\0b", "c"], ["\0"], [""], []])
def test_all_at_once_is_as_one_by_one(names):
    assert spaced_pieces(names) == [spaced_piece(name) for name in names]
