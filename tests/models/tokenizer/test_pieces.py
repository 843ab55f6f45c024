from __future__ import annotations

import pytest

from langchain_gemma_jax.models.tokenizer.pieces import Pieces, spaced_piece, spaced_pieces

NAMES = ["▁a", "<0x0A>", "<0xzz>", "<0x0A>b", "", "\n", "▁▁", "é", "<0xfF>", "a"]


@pytest.mark.parametrize("names", [NAMES, [*NAMES, "\0"], ["a\0b", "c"], ["\0"], [""], []])
def test_all_at_once_is_as_one_by_one(names):
    assert spaced_pieces(names) == [spaced_piece(name) for name in names]


def test_pieces_end_to_end_are_a_sequence_like_a_tuple():
    for plain in ((), (b"",), (b"a", b"", b"bc", b"\xff\x00", b"", "é".encode())):
        pieces = Pieces(plain)
        assert tuple(pieces) == plain
        assert len(pieces) == len(plain)
        for index in range(-len(plain), len(plain)):
            assert pieces[index] == plain[index]
        for part in (slice(None), slice(1, -1), slice(None, None, -1), slice(0, 99, 2)):
            assert pieces[part] == list(plain[part])
        for index in (len(plain), -len(plain) - 1):
            with pytest.raises(IndexError):
                pieces[index]
