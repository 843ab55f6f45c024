"""A model's status, in words for people."""

from __future__ import annotations

from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.model_status import status_of
from tests.engine.residency.books import entry


def test_what_is_divided_says_among_how_many_and_why():
    one = entry("m", home="gpus", devices=4, chosen="devices=4")
    one.state = State.RESIDENT
    assert str(status_of(one, 3.0)).startswith("m: on 4 devices (devices=4), each 30 B weights, ")
