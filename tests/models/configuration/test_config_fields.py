"""Look-ups in a configuration: the value in its range, the default where there is none, or an error with both."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import GLOBAL, LARGEST_SIZE, LOCAL, Fields

ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()) | st.just({})


def of(value):
    return Fields({"x": value}, {}, "config.json")


@given(ANYTHING)
def test_any_value_is_what_was_asked_for_or_a_typed_error(value):
    for wanted, look_up, good in (
        (int, lambda: of(value).size("x", 7), lambda found: 1 <= found <= LARGEST_SIZE),
        (float, lambda: of(value).positive("x", 7.0), lambda found: found > 0 and math.isfinite(found)),
        (bool, lambda: of(value).get("x", True), lambda _: True),
        (str, lambda: of(value).get("x", "7"), lambda _: True),
        (tuple, lambda: of(value).token_ids("x", (7,)), lambda ids: all(0 <= one <= LARGEST_SIZE for one in ids)),
    ):
        try:
            found = look_up()
        except ConfigError as error:
            assert str(error).startswith("config.json: expected x to be ")  # noqa: PT017
        else:
            assert type(found) is wanted
            assert good(found)
            if value is None:
                assert found in (7, True, "7", (7,))


def test_the_whole_models_ids_come_first_and_one_id_is_a_list_of_one():
    assert Fields({"x": 3}, {"x": [1, 106]}, "").token_ids("x", ()) == (1, 106)
    assert of(3).token_ids("x", ()) == (3,)


def test_every_so_many_layers_one_is_global_unless_all_are_listed():
    assert Fields({}, {}, "").layer_types(4, 2) == (LOCAL, GLOBAL, LOCAL, GLOBAL)
    assert Fields({"layer_types": [GLOBAL]}, {}, "").layer_types(1, 2) == (GLOBAL,)
    for wrong in ([LOCAL], [LOCAL, "other"], 5):
        with pytest.raises(ConfigError, match="a list of 2 times"):
            Fields({"layer_types": wrong}, {}, "").layer_types(2, 2)


def test_null_may_mean_none_and_what_changes_nothing_is_not_refused():
    assert (Fields({}, {}, "").positive_or_none("x", 2.0), of(None).positive_or_none("x", 2.0)) == (2.0, None)
    for harmless in (None, False, "silu"):
        of(harmless).refuse("x", "it is not", "silu")
    with pytest.raises(UnsupportedModelError, match=r"^config.json: x='relu' is not supported: it is not"):
        of("relu").refuse("x", "it is not", "silu")
