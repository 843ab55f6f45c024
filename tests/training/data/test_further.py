"""What is asked after a conversation has shown its skill."""

import pytest

from training.data.conversation import Calls, Model, Say
from training.data.further import DECLINE, further, missing, served, with_tools
from training.data.side import Side
from training.data.skills import call, everyday, no_call
from training.data.tools import crowd, make_tool
from training.data.world import World


@pytest.mark.parametrize("skill", [call.right_tool, everyday.everyday, no_call.no_tool_fits])
def test_only_training_goes_on(skill):
    held_out = [skill(World(f"more/{index}", Side.HELD_OUT)) for index in range(40)]
    assert {len(each.turns) for each in held_out} == {2}
    trained = [skill(World(f"more/{index}", Side.TRAIN)) for index in range(40)]
    assert sum(len(each.turns) > 2 for each in trained) > 20


def test_what_is_asked_later_is_not_graded_and_calls_only_what_is_there():
    for index in range(60):
        w = World(f"later/{index}", Side.TRAIN)
        made = make_tool(w)
        conversation = with_tools(w, "any", [], crowd(w, [made]))
        names = {tool.name for tool in conversation.tools}
        for turn in conversation.turns:
            if isinstance(turn, Model):
                assert not turn.graded
                calls = [each for step in turn.steps if isinstance(step, Calls) for each in step.calls]
                assert {each.tool for each in calls} <= names


def test_some_of_what_is_asked_later_is_answered_in_a_word_and_nothing_that_is_graded():
    said = {True: [], False: []}
    for index in range(60):
        w = World(f"brief/{index}", Side.TRAIN)
        for graded, texts in said.items():
            _, turn = served(w, make_tool(w), graded=graded)
            texts.append(turn.steps[-1].text)
    assert "Done." not in said[True]
    assert 15 < said[False].count("Done.") < 45


def test_what_no_tool_can_do_is_declined():
    declined = 0
    for index in range(60):
        w = World(f"declined/{index}", Side.TRAIN)
        for turn in further(w, crowd(w, [make_tool(w)])):
            declined += isinstance(turn, Model) and turn.steps == (DECLINE,)
    assert declined > 10
    assert isinstance(DECLINE, Say)


def test_a_missing_tool_is_about_something_else():
    for index in range(40):
        w = World(f"missing/{index}", Side.TRAIN)
        tools = crowd(w, [make_tool(w)])
        other = missing(w, tools)
        assert all(other.noun not in each.tool.description and other.noun != each.noun for each in tools)
