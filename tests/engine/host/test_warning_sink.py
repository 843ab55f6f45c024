"""Who hears of a call's warnings."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from langchain_gemma_jax.engine.base.guards import Guards, GuardWarning
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.host.warning_sink import warning_sink


def guards(**settings: object) -> Guards:
    made = Settings(**settings)
    return Guards(lambda: made)


def test_who_hears_of_a_call_is_warned_instead_of_this_process(recwarn):
    heard: list[Warning] = []
    context = copy_context()
    context.run(warning_sink.set, heard.append)
    warning = guards(guards="warn")
    asker = context.run(warning.asked_by, "mine", None)
    warning.trip("recompile", "a reason", asker)  # as in the thread that owns the engine
    assert [(type(each), str(each)) for each in heard] == [(GuardWarning, "recompile guard: a reason.")]
    assert list(recwarn) == []
    with pytest.warns(GuardWarning):
        warning.trip("recompile", "a reason", warning.asked_by("mine", None))
