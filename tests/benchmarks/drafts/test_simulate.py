"""Drafts on recorded conversations: policies are compared without a model, and without a clock."""

from __future__ import annotations

import pytest

from benchmarks.drafts.agents import AGENTS
from benchmarks.drafts.simulate import CHOICES, MOST, Simulated, main, replay, simulate
from benchmarks.drafts.traces import Turn, read, write
from langchain_gemma_jax.engine.base.draft_sources import SOURCES, SUFFIXES
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts

COSTS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # of a further row


@pytest.fixture(scope="module")
def trace():
    return read()


def later(found):
    return {agent: results[-1].speed for agent, results in found.items()}


def test_the_trace_is_of_the_agents(trace):
    assert set(trace) == set(AGENTS)
    for name, agent in AGENTS.items():
        assert [len(turns) for turns in trace[name]] == [len(said) for said in agent.conversations]
        assert all(1 < len(turn.answer) <= agent.max_tokens for turns in trace[name] for turn in turns)


@pytest.mark.parametrize("each_row", COSTS)
def test_no_choice_of_sources_makes_anything_slow(trace, each_row):
    for sources in CHOICES.values():
        for agent, results in replay(trace, sources, each_row).items():
            for result in results:
                assert result.speed >= 0.97, (agent, sources)


def test_every_token_is_given_once_whatever_is_drafted(trace):
    plain = {agent: [sum(len(turn.answer) - 1 for turn in turns) for turns in found] for agent, found in trace.items()}
    for sources in CHOICES.values():
        found = replay(trace, sources, 0.1)
        assert {agent: [each.tokens for each in results] for agent, results in found.items()} == plain
    assert set(later(replay(trace, (), 0.1)).values()) == {1.0}


def test_past_answers_speed_the_second_conversation_of_an_agent(trace):
    found = later(replay(trace, SOURCES, 0.1))
    assert found["tool calls"] > 2.5
    assert found["JSON objects"] > 1.8
    first = replay(trace, (SUFFIXES,), 0.1)
    assert first["tool calls"][1].speed > first["tool calls"][0].speed


def test_an_answer_that_was_given_before_takes_an_eighth_of_the_passes():
    drafts, turn = ModelDrafts(SOURCES, MOST), Turn(tuple(range(100)), tuple(range(1000, 1081)))
    first, second = Simulated(), Simulated()
    simulate(drafts, "a", turn, 0.0, first)
    simulate(drafts, "a", turn, 0.0, second)
    assert (first.tokens, first.passes) == (80, 80)
    assert (second.tokens, second.passes) == (80, 10)


def test_a_trace_is_read_as_it_was_written(trace, tmp_path):
    write(trace, tmp_path / "again.json")
    assert read(tmp_path / "again.json") == trace


def test_the_table_has_each_agent_with_each_choice(trace, capsys):
    assert main(["--each-row", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(trace) * len(CHOICES)
