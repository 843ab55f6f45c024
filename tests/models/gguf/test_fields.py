"""Look-ups in the metadata of a file: a value of the kind that was asked for, a default, or an error that says both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from langchain_gemma_jax.errors import ConfigError
from langchain_gemma_jax.models.gguf.fields import Metadata

VALUES = {
    "general.architecture": "gemma3",
    "gemma3.size": 7,
    "share": 0.5,
    "on": True,
    "ids": np.array([1, 2], np.int32),
    "marks": np.array([True, False]),
    "scores": np.array([0.5], np.float64),
}


@pytest.fixture
def found():
    return Metadata(SimpleNamespace(metadata=VALUES), "x.gguf")


def test_values_of_the_kind_that_was_asked_for_and_defaults(found):
    assert found.whole(found.own("size")) == 7
    assert (found.number("gemma3.size"), found.number("share")) == (7.0, 0.5)
    assert (found.text("no", "default"), found.whole("no", 3), found.number("no"), found.flag("no", default=False)) == (
        "default", 3, None, False,
    )  # fmt: skip
    assert found.flag("on", default=False)
    assert (found.whole_numbers("ids"), found.whole_numbers("marks"), found.whole_numbers("share")) == (
        [1, 2], [1, 0], None,
    )  # fmt: skip
    assert found.numbers("scores").dtype == "float32"
    assert found.numbers("no") is found.strings("no") is None


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda found: found.text("on", ""), "on to be str, found True"),
        (lambda found: found.whole("on"), "on to be int, found True"),
        (lambda found: found.flag("gemma3.size", default=True), "gemma3.size to be bool, found 7"),
        (lambda found: found.number("on"), "on to be float, found True"),
        (lambda found: found.integers("scores"), "scores to be a list of whole numbers, found .*a list of float64"),
        (lambda found: found.numbers("share"), "share to be a list of numbers, found 0.5"),
        (lambda found: found.strings("ids"), "ids to be a list of strings"),
    ],
)
def test_values_of_another_kind_are_errors(found, ask, says):
    with pytest.raises(ConfigError, match=f"^x.gguf: expected {says}"):
        ask(found)
