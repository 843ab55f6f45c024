"""Checks of requests' fields: each error names the field, and what was found in it."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.fields import (
    as_arguments,
    as_blocks,
    as_list,
    as_object,
    as_text,
    as_truth,
    refuse_unknown,
    texts_or_blocks,
)

KINDS = {"text": "text", "input_text": "text", "refusal": "refusal"}
IMAGE = {"type": "image", "base64": "eA=="}


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (lambda: refuse_unknown({"a": 1, "b": 2}, ["a"], "x."), r"x\.b: this server knows no such field"),
        (lambda: as_object([], "x"), "x: expected an object, found list"),
        (lambda: as_list({}, "x"), "x: expected a list, found dict"),
        (lambda: as_list([1, 2], "x", most=1), "x: expected at most 1, found 2"),
        (lambda: as_text(7, "x"), "x: expected a string, found int 7"),
        (lambda: as_truth("yes", "x"), "x: expected true or false, found str 'yes'"),
        (lambda: as_arguments("[", "x"), "x: expected an object written as JSON"),
        (lambda: as_arguments("[]", "x"), "x: expected an object, found list"),
        (lambda: as_blocks([{"type": "text"}], "x", KINDS), r"x\[0\]\.text: expected a string, found NoneType"),
        (lambda: as_blocks([IMAGE], "x", KINDS), r"x\[0\]: expected a block of type text.*found 'image'"),
        (lambda: as_blocks([3], "x", KINDS), r"x\[0\]: expected an object"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(check, says):
    with pytest.raises(InputError, match=says):
        check()


def test_what_is_right_is_given_back_as_it_is():
    refuse_unknown({"a": 1}, ["a", "b"])
    assert (as_truth(None, "x"), as_truth(True, "x")) == (False, True)
    assert (as_arguments("", "x"), as_arguments('{"a": 1}', "x")) == ({}, {"a": 1})
    assert as_blocks("", "x", KINDS) == []
    blocks = as_blocks([{"type": "refusal", "refusal": "No."}, {"type": "text", "text": "Yes."}], "x", KINDS)
    assert texts_or_blocks(blocks, "\n") == "No.\nYes."
    shown = as_blocks([IMAGE], "x", KINDS, shows=True)
    assert texts_or_blocks(shown) == shown == [IMAGE]
