"""Errors cross the wire: every kind, with its text and what programs read of it."""

from __future__ import annotations

import json
import warnings

import pytest

from langchain_gemma_jax import CutOffError, GemmaJaxError, ServerError, errors
from langchain_gemma_jax.wire.error_forms import error_in, error_out

OF_SEVERAL = {
    "ContextLengthError": (5, 3, "wait"),
    "SchemaError": ("#/a", "no"),
    "MediaError": ("messages[0].content[1]", "no", ""),
    "MediaLimitError": ("messages[0].content[1]", "too large", "pixels"),
    "MediaAccessError": ("messages[0].content[1]", "no", ""),
    "UnreadableMediaError": ("messages[0].content[1]", "no", ""),
    "DeviceMemoryError": ("full", ("a", "b")),
}
KINDS = [
    kind
    for name in dir(errors)
    if isinstance(kind := getattr(errors, name), type) and issubclass(kind, GemmaJaxError) and kind is not GemmaJaxError
]


def test_every_kind_comes_back_as_it_was():
    for kind in [*KINDS, CutOffError]:
        of_files = ("/a", "b", "c", "d") if issubclass(kind, errors.CheckpointError) else ("what is wrong",)
        error = kind(*OF_SEVERAL.get(kind.__name__, of_files))
        back = error_in(json.loads(json.dumps(error_out(error))))
        assert (type(back), str(back), vars(back)) == (kind, str(error), vars(error))
        assert back.is_retryable is error.is_retryable


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"name": "SystemExit", "arguments": [], "message": "no"},
        {"name": "InputError", "arguments": {}, "message": "no"},
        {"name": "ContextLengthError", "arguments": [], "message": "no"},
        {"name": ["InputError"], "arguments": []},
        {"name": "os.system", "arguments": ["true"], "message": "no"},
    ],
)
def test_what_is_no_error_of_ours_is_one_of_the_server(told):
    assert type(error_in(told)) is ServerError


def test_arguments_that_are_no_json_become_words():
    error = errors.InputError(object())
    assert error_out(error)["arguments"] == [str(error)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(error_in(error_out(error)), errors.InputError)
