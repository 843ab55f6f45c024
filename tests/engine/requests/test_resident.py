"""A conversation on the device: its keys are numbers of one type, and its repr tells nothing of what was said."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident


def test_keys_are_64_bit_integers():
    with pytest.raises(OverflowError):
        token_keys([2**63])
    with pytest.raises(TypeError, match="token_keys"):
        Resident("", 8, [1, 2, 3])


def test_neither_what_was_said_nor_an_array_is_in_a_repr():
    held = Resident("", 8, token_keys([271828]), whole=["ARRAY"], local={0: "ARRAY"})
    index = PrefixIndex(Paging(8, None), PageSizes(1, 1))
    index.add(held)
    assert "271828" not in repr(index.plan([271828, 5], ""))
    assert "ARRAY" not in repr(held)
