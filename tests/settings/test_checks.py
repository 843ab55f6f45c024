"""Each setting that is not about sampling: what it may be, how it is stored, and what is said of anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.settings.table import checked_setting

GOOD = {
    "model": ["google/gemma-3-1b-it", "./a folder"],
    "dtype": ["bfloat16", "float32", "float16"],
    "revision": ["main", ""],
    "dialect": ["gemma4"],
    "scope": ["", "a tenant"],
    "timeout": [0, 2.5, 2**31 - 1],
    "keep_alive": [0, 300],
    "max_context": [2, 2**31 - 1],
    "thinking": [True, False],
    "parallel_tool_calls": [True, False],
}
BAD = {
    "model": ["", "  ", 3, b"m", None],
    "dtype": ["int8", "float64", 16, None],
    "revision": [3, None],
    "dialect": ["llama", 4],
    "scope": [None, 3],
    "timeout": [-1, float("nan"), float("inf"), 2**31, True, "5"],
    "keep_alive": [-0.5, False, "1h"],
    "max_context": [1, 0, -4, True, 2.0, "9", 2**31],
    "thinking": [1, 0, "yes", None],
    "parallel_tool_calls": [1, "no"],
    "route": [3, ["light"], {"light": ""}],
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_possible_is_stored(name):
    for value in GOOD[name]:
        stored = checked_setting(name, value)
        assert stored == value
        assert type(stored) is (float if name in {"timeout", "keep_alive"} else type(value))


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_is_an_error_that_names_it_and_says_what_is(name):
    for value in BAD[name]:
        with pytest.raises(InputError, match=rf"^{name}: expected .*found") as caught:
            checked_setting(name, value)
        assert repr(value) in str(caught.value) or name == "route"


def test_paths_and_numbers_of_numpy_become_plain_values():
    assert checked_setting("model", Path("a") / "b") == str(Path("a") / "b")
    stored = checked_setting("timeout", np.float32(2.5))
    assert (stored, type(stored)) == (2.5, float)


def test_no_route_is_none():
    assert checked_setting("route", None) is None
