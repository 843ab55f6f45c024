"""The table of settings: what each may be, how it is stored, what is said of anything else, and who has it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax import ChatGemmaJax, GemmaJaxEmbeddings, GemmaJaxLLM, InputError
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.decisions import GemmaDecisionModel
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.models.configuration import how_to_load
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES
from langchain_gemma_jax.models.packed import activations, quantize
from langchain_gemma_jax.settings.table import SAMPLED, SETTINGS, ChatSettings, checked_setting
from scripts.settings_page import PAGE, written

MODELS = [ChatGemmaJax, GemmaJaxLLM, GemmaDecisionModel, GemmaJaxEmbeddings]

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
    "keep_alive": [-0.5, False, "-1h", "soon"],
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


def test_how_long_a_model_stays_may_be_a_text():
    assert [kind(model="x", keep_alive="5m").keep_alive for kind in MODELS] == [300.0] * len(MODELS)


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


def test_a_setting_has_a_check_and_a_documentation():
    for name, setting in SETTINGS.items():
        assert (setting.check is None) == (name in SAMPLED), f"{name}: one of both, Setting or Sampling, checks it"
        assert ChatSettings.model_fields[name].description, name
    assert set(SAMPLED) <= {field.name for field in fields(Sampling)}


def test_loading_takes_what_the_table_allows():
    assert {*ITEM_BYTES} == {*how_to_load.DTYPES}
    assert (quantize.WEIGHTS, activations.ACTIVATIONS) == (how_to_load.WEIGHTS, how_to_load.ACTIVATIONS)


def test_a_name_is_of_one_setting():
    names = [each for setting in SETTINGS.values() for each in (*setting.other_names, *setting.elsewhere)]
    assert len(names) == len({*names} - {*SETTINGS})


@pytest.mark.parametrize("kind", [*MODELS, Options])
def test_a_class_has_its_settings_as_the_table_has_them(kind):
    shared = kind.model_fields.keys() & ChatSettings.model_fields.keys() - kind.__annotations__.keys()
    assert len(shared) > 5
    for name in shared:
        own, here = kind.model_fields[name], ChatSettings.model_fields[name]
        assert (own.annotation, own.default, own.description) == (here.annotation, here.default, here.description)


def test_a_model_of_langchain_says_what_each_of_its_fields_is():
    for kind in MODELS:
        ours = {name for base in kind.__mro__ if "gemma_jax" in base.__module__ for name in base.__annotations__}
        assert [name for name in ours & kind.model_fields.keys() if not kind.model_fields[name].description] == []


def test_an_options_values_cannot_be_changed():
    asked = ChatGemmaJax(model="x")._options(None, {})
    with pytest.raises(ValueError, match="frozen"):
        asked.timeout = 3.0


def test_the_page_of_settings_is_as_the_table_is():
    page = PAGE.read_text()
    assert written(page) == page, "run python scripts/settings_page.py"
