"""Each of Ollama's options is a setting, or is named as one without an effect, or is refused by its name."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.server.ollama.notes import Notes
from langchain_gemma_jax.server.ollama.options import KNOWN, NO_EFFECT, settings_of_options


def read(**options):
    notes = Notes()
    return settings_of_options(options, notes), notes.field.get("warnings", [])


def test_settings_by_ollamas_names_are_ours():
    found, notes = read(
        temperature=0.5, top_k=5, top_p=0.5, min_p=0.1, seed=3, stop=["x"], presence_penalty=1, frequency_penalty=1,
        repeat_penalty=1.5, num_predict=7, num_ctx=99, repeat_last_n=-1, mirostat=0, tfs_z=1.0, typical_p=1,
        penalize_newline=True, num_gpu=None,
    )  # fmt: skip
    assert found == {
        "temperature": 0.5, "top_k": 5, "top_p": 0.5, "min_p": 0.1, "seed": 3, "stop": ("x",), "presence_penalty": 1.0,
        "frequency_penalty": 1.0, "repetition_penalty": 1.5, "max_tokens": 7, "max_context": 99,
    }  # fmt: skip
    assert notes == []
    assert read(num_predict=-1, seed=-1) == read(num_predict=-2) == ({}, [])
    assert read(repeat_last_n=0, repeat_penalty=1.5)[0] == {"repetition_penalty": 1.0}


def test_what_means_nothing_here_is_named():
    for name in NO_EFFECT:
        found, (note,) = read(**{name: 1})
        assert (found, note.startswith(f"options.{name} has no effect: ")) == ({}, True)
    assert read(repeat_last_n=64)[1] == ["options.repeat_last_n has no effect: no repeat_penalty is asked for."]


def test_what_would_change_answers_is_an_error():
    for options in (
        {"mirostat": 1}, {"mirostat": False}, {"tfs_z": 0.5}, {"typical_p": 0.5}, {"penalize_newline": False},
        {"penalize_newline": 1}, {"repeat_last_n": 64, "repeat_penalty": 1.1}, {"repeat_last_n": "all"},
        {"repeat_last_n": -2}, {"temperature": "warm"}, {"top_p": 2}, {"num_ctx": 0}, {"num_predict": 0},
        {"seed": 0.5}, {"stop": 5}, {"rope_frequency_base": 1e6}, {"": 1},
    ):  # fmt: skip
        with pytest.raises(InputError, match=rf"^options\.{next(iter(options))}: "):
            read(**options)
    with pytest.raises(InputError, match="options: expected an object"):
        settings_of_options([1], Notes())


def test_the_options_of_ollamas_own_client_are_all_known():
    options = pytest.importorskip("ollama").Options
    assert set(options.model_fields) <= KNOWN
