"""Lines, times and errors as Ollama writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from langchain_gemma_jax import BusyError
from langchain_gemma_jax.server.http.problems import problem_of
from langchain_gemma_jax.server.ollama.forms import OllamaForm, line, nanoseconds, time_text


def test_errors_are_a_text_with_our_code_beside_it():
    problem = problem_of(BusyError("Too many."))
    assert OllamaForm().body(problem) == {"error": "Too many.", "code": "busy"}
    assert json.loads(OllamaForm().in_stream(problem)) == {"error": "Too many.", "code": "busy"}


def test_a_line_is_one_whatever_is_in_it():
    assert line({"response": "a\nb\u2028"}).count(b"\n") == 1


def test_times_and_durations():
    assert datetime.fromisoformat(time_text()).tzinfo == UTC
    assert datetime.fromisoformat(time_text(1.5)).timestamp() == 1.5
    assert (nanoseconds(0.25), nanoseconds(-1.0)) == (250_000_000, 0)
