"""The limits of what callers may ask of the engine, and the errors that they get beyond."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.engine.base.checks import (
    check_place,
    checked_prompt,
    checked_sampling,
    checked_timeout,
    checked_token_count,
)
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import ContextLengthError, InputError

VOCABULARY, CONTEXT = 320, 16


def test_a_prompt_is_copied_whatever_holds_it():
    for given in ([3, 4], (3, 4), np.array([3, 4]), range(3, 5)):
        assert list(checked_prompt(given, VOCABULARY, CONTEXT)) == [3, 4]
    own = [3, 4]
    ids = checked_prompt(own, VOCABULARY, CONTEXT)
    own[0] = 9
    assert ids[0] == 3


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("text", "found str"),
        (b"\3", "found bytes"),
        (bytearray(b"\3"), "found bytearray"),
        (7, "found int"),
        (None, "found NoneType"),
        (iter([3]), "found list_iterator"),
        ([3, "4"], "found list"),
        ([3, 4.0], "found list"),
        ([3, None], "found list"),
        ([3, 2**63], "found list"),
        ([3, True], "True or False"),
        ([], "found none"),
        ([3, -1], "found -1"),
        ([3, 320], "found 320"),
    ],
)
def test_what_is_no_prompt_is_refused_and_named(prompt, found):
    with pytest.raises(InputError, match="prompt: expected") as caught:
        checked_prompt(prompt, VOCABULARY, CONTEXT)
    assert found in str(caught.value)


def test_a_prompt_leaves_room_for_one_token_and_a_huge_one_is_not_looked_at():
    assert len(checked_prompt([1] * (CONTEXT - 1), VOCABULARY, CONTEXT)) == CONTEXT - 1

    class Huge:
        def __len__(self):
            return 10**12

        def __iter__(self):
            raise AssertionError("it was looked at")

    for prompt, excess in (([1] * CONTEXT, 1), (Huge(), 10**12 - CONTEXT + 1)):
        with pytest.raises(ContextLengthError) as caught:
            checked_prompt(prompt, VOCABULARY, CONTEXT)
        assert caught.value.excess == excess


def test_how_to_sample():
    assert checked_sampling(None, VOCABULARY) == Sampling()
    biased = Sampling(logit_bias={VOCABULARY - 1: 1.0})
    assert checked_sampling(biased, VOCABULARY) is biased
    with pytest.raises(InputError, match="logit_bias: expected token ids from 0 to 318, found 319"):
        checked_sampling(biased, VOCABULARY - 1)
    with pytest.raises(InputError, match=r"expected Sampling\(...\) or None, found {'temperature': 1}"):
        checked_sampling({"temperature": 1}, VOCABULARY)


def test_whose_it_is_and_how_much_of_it_is_a_system_prompt():
    for system in (0, 5):
        check_place("a tenant", system, 5)
    for system in (-1, 6, True, 2.0, None):
        with pytest.raises(InputError, match="system: expected how many of the 5 tokens"):
            check_place("", system, 5)
    for scope in (None, 3, b"a"):
        with pytest.raises(InputError, match="scope: expected a string"):
            check_place(scope, 0, 5)


def test_numbers_of_tokens_and_seconds():
    assert checked_token_count(1) == 1
    for count in (0, -3, True, 2.0, "9", None):
        with pytest.raises(InputError, match="max_context: expected a whole number"):
            checked_token_count(count)
    for given in (0, 2.5, np.float32(2.5), np.int64(3)):
        assert checked_timeout(given) == float(given)
    for given in (-0.1, float("nan"), float("inf"), 2**31, True, "5", None):
        with pytest.raises(InputError, match="timeout: expected seconds"):
            checked_timeout(given)
