"""deepagents finds the package by its entry points, and gives small models few tools."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.chat.entry_points import entry_points
from tests.dialects.vocabulary import tokenizer


def test_entry_points_lead_to_functions():
    found = entry_points()
    assert {each.group for each in found} >= {"deepagents.provider_profiles", "deepagents.harness_profiles"}
    assert all(callable(each.load()) for each in found if each.group.startswith("deepagents."))


@pytest.mark.skipif(find_spec("deepagents") is None, reason="deepagents is not installed")
def test_a_deep_agent_is_made_by_a_name_and_small(scripted, monkeypatch):
    profiles = import_module("deepagents.profiles._builtin_profiles")
    monkeypatch.setattr(
        profiles, "entry_points", lambda group: [each for each in entry_points() if each.group == group]
    )
    from deepagents import create_deep_agent

    _, engine = scripted("Hello", max_tokens=20)
    answer = create_deep_agent(model="gemma_jax:sprout-m").invoke({"messages": [("user", "Hi")]})["messages"][-1]
    assert answer.text == "Hello"
    prompt = tokenizer().decode(engine.submitted[0]["prompt"])
    assert "Work in small steps." in prompt
    assert "declaration:read_file" in prompt
    assert not any(f"declaration:{name}" in prompt for name in ("execute", "task", "write_todos", "grep"))
