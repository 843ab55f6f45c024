"""A conversation on the device: its keys are numbers of one type, and its repr tells nothing of what was said."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Rings
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot

GLOBAL = Rings(None)


def index_of(*residents, rings=GLOBAL):
    index = PrefixIndex(rings)
    for one in residents:
        index.add(one)
    return index


def shot(end, written=0, nbytes=10, handle=None):
    return Snapshot(end, max(end, written), nbytes, object() if handle is None else handle)


def test_keys_are_64_bit_integers():
    with pytest.raises(OverflowError):
        token_keys([2**63])
    with pytest.raises(TypeError, match="token_keys"):
        Resident("", 10, 1, None, [1, 2, 3])


def test_neither_what_was_said_nor_an_array_is_in_a_repr():
    held = Resident("", 4096, 100, "ARRAY", token_keys([271828]), snapshots=[shot(1, handle="ARRAY")])
    assert "271828" not in repr(index_of(held).plan([271828, 5], ""))
    assert "ARRAY" not in repr(held)
