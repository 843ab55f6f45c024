"""Continuations of texts come back from JSON as they went."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax import ServerError
from langchain_gemma_jax.chat.calling.continued import Continuation, TextEnd
from langchain_gemma_jax.wire.text_forms import continuation_in, continuation_out, piece_in, piece_out

END = TextEnd("stop", "\n\n", 3, 5)


def test_what_is_sent_arrives():
    for found in (Continuation("", END), Continuation("\u2028é", TextEnd("length", None, 0, 0))):
        assert continuation_in(json.loads(json.dumps(continuation_out(found)))) == found
    for piece in ("", "more", END):
        assert piece_in(json.loads(json.dumps(piece_out(piece)))) == piece


def test_what_is_of_another_form_is_a_servers_error():
    for told in ({}, {"text": "a"}, {"text": "a", "ended": {}}, {"text": 5, "ended": vars(END)}, {"ended": [1]}):
        with pytest.raises(ServerError, match="Are client and server of one version"):
            continuation_in(told)
    for told in ({}, {"ended": {"stop": None}}, {"ended": None}):
        with pytest.raises(ServerError, match="not known here"):
            piece_in(told)
