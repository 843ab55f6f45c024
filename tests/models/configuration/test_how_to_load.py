"""One value of what a caller asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad

WORDS = st.none() | st.text(max_size=3)
ASKED = st.builds(HowToLoad, WORDS, WORDS, WORDS, WORDS, WORDS, st.none() | st.integers() | st.text(), token=WORDS)


@given(ASKED)
def test_it_goes_through_arguments_and_another_process_loads_the_same_without_the_token(asked):
    again = HowToLoad.of(asked.arguments())
    assert (again, again.token) == (asked, asked.token)
    there = HowToLoad.of(asked.to_dict())
    assert (there, there.token) == (asked, None)
    assert asked.token is None or len(asked.token) < 2 or repr(asked.token) not in repr(HowToLoad(token=asked.token))
    assert None not in asked.to_dict().values()


def test_a_replica_has_devices_of_its_own_and_no_replicas():
    assert HowToLoad("float32", devices=4, replicas=2).alone(1) == HowToLoad("float32", devices=1)


def test_an_unknown_option_is_named_with_those_that_are_known():
    with pytest.raises(
        InputError, match=r"^wieghts: expected one of activations, cache_dtype, devices, .*weights to load a model by"
    ):
        HowToLoad.of({"wieghts": "int8"})
