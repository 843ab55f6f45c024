"""What is asked after a conversation has shown its skill."""

from itertools import chain

import pytest

from training.data.conversation import Calls, Model, Say
from training.data.further import DECLINE, further, missing, served, with_tools
from training.data.side import Side
from training.data.skills import ask_back, call, errors, everyday, no_call, parallel
from training.data.skills import chain as chains
from training.data.tools import crowd, make_tool
from training.data.world import World


@pytest.mark.parametrize("skill", [call.right_tool, everyday.everyday, no_call.no_tool_fits])
def test_only_training_goes_on(skill):
    held_out = [skill(World(f"more/{index}", Side.HELD_OUT)) for index in range(40)]
    assert {(len(each.turns), each.asides) for each in held_out} == {(2, ())}
    trained = [skill(World(f"more/{index}", Side.TRAIN)) for index in range(80)]
    assert sum(len(each.turns) > 2 for each in trained) > 2
    assert sum(len(each.asides) > 3 for each in trained) > 50
    assert not any(len(each.turns) > 2 and each.asides for each in trained)


def test_what_is_asked_later_is_not_graded_and_calls_only_what_is_there():
    for index in range(60):
        w = World(f"later/{index}", Side.TRAIN)
        made = make_tool(w)
        conversation = with_tools(w, "any", [], crowd(w, [made]))
        names = {tool.name for tool in conversation.tools}
        for turn in (*conversation.turns, *chain.from_iterable(conversation.asides)):
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


@pytest.mark.parametrize("skill", [parallel.two_tools, chains.two_calls, ask_back.ask_back, errors.put_right])
def test_asides_show_what_the_conversation_shows_with_other_words(skill):
    again = 0
    for index in range(40):
        made = skill(World(f"again/{index}", Side.TRAIN))
        again += sum(len(_calls(aside)) > 1 or len(aside) > 2 for aside in made.asides)
        assert len({str(aside) for aside in made.asides}) >= len(made.asides) * 0.8
    assert again > 40


def test_most_asides_end_with_a_call_and_lead_to_one():
    ends = [
        turn.steps[-1]
        for index in range(40)
        for *_, turn in call.right_tool(World(f"ends/{index}", Side.TRAIN)).asides
        if isinstance(turn, Model)
    ]
    called = sum(isinstance(step, Calls) for step in ends)
    assert len(ends) * 0.4 < called < len(ends) * 0.8
    assert all(isinstance(step, Calls | Say) for step in ends)


def _calls(turns):
    steps = [step for turn in turns if isinstance(turn, Model) for step in turn.steps]
    return [each for step in steps if isinstance(step, Calls) for each in step.calls]


def test_what_no_tool_can_do_is_declined():
    declined = 0
    for index in range(300):
        w = World(f"declined/{index}", Side.TRAIN)
        for turn in further(w, crowd(w, [make_tool(w)])):
            declined += isinstance(turn, Model) and turn.steps == (DECLINE,)
    assert 20 < declined < 70
    assert isinstance(DECLINE, Say)


def test_a_missing_tool_is_about_something_else():
    for index in range(40):
        w = World(f"missing/{index}", Side.TRAIN)
        tools = crowd(w, [make_tool(w)])
        other = missing(w, tools)
        assert all(other.noun not in each.tool.description and other.noun != each.noun for each in tools)


def test_in_training_many_tools_are_small_ones_beside_the_one_that_is_wanted():
    def largest(side):
        found = []
        for index in range(100):
            w = World(f"small/{index}", side)
            wanted = make_tool(w)
            found.append(max(len(each.fields) for each in crowd(w, [wanted], least=8) if each is not wanted))
        return found

    trained, held_out = largest(Side.TRAIN), largest(Side.HELD_OUT)
    assert 40 <= sum(most <= 2 for most in trained) <= 80, "most are small, and not all"
    assert sum(most <= 2 for most in held_out) < 10
