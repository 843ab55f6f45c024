"""Whose line a warning shows."""

from __future__ import annotations

import sys
import types

from langchain_gemma_jax.engine.host.users_line import users_line


def called_by(*rooms: str):
    """Return a function that asks, called by one function of each of these modules, the last one by us."""
    call = users_line
    for room in ("langchain_gemma_jax.x", *rooms):
        module = types.ModuleType(room)
        module.call = call
        exec("def between():\n    return call()", module.__dict__)
        call = module.between
    return call


def test_the_first_line_that_is_of_no_library_is_shown():
    assert called_by()() == 2
    assert called_by("langchain_core.runnables.base", "pydantic.main", "langgraph.pregel")() == 5
    assert called_by("langchain_core.x", "my_agent", "langchain.y")() == 3
    assert called_by("langchain_of_mine")() == 2


def test_where_all_are_of_libraries_it_is_the_line_of_whoever_asks(monkeypatch):
    frame = types.SimpleNamespace(f_globals={"__name__": "langchain_core.x"}, f_back=None)
    monkeypatch.setattr(sys, "_getframe", lambda _: frame)
    assert users_line() == 1
