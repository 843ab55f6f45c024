"""A model's status, in words for people."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.model_status import status_of
from tests.engine.residency.books import entry


def test_what_is_divided_says_among_how_many_and_why():
    one = entry("m", home="gpus", devices=4, chosen="devices=4")
    one.state = State.RESIDENT
    assert str(status_of(one, 3.0)).startswith("m: on 4 devices (devices=4), each 30 B weights, ")


def test_a_notebook_draws_it():
    one = entry("<script>m", home="gpus", devices=4, chosen="devices=4")
    for state, pinned, keep_alive, said in (
        (State.RESIDENT, False, None, "until memory is needed"),
        (State.RESIDENT, False, 300.0, "300 s unused"),
        (State.ABSENT, True, None, "always: pinned"),
    ):
        one.state, one.pinned, one.keep_alive = state, pinned, keep_alive
        text = status_of(one, 3.0)._repr_html_()
        drawn = ET.fromstring(text)
        assert len(drawn.findall("{http://www.w3.org/2000/svg}svg")) == 1
        assert ("<script" not in text, said in text, "4, devices=4" in text) == (True, True, True)
