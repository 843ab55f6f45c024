"""What people say of themselves, alone and beside tools."""

import pytest

from training.data.conversation import Model, Say, User
from training.data.side import Side
from training.data.skills import beside, personal
from training.data.stages import LIKE_PEOPLE
from training.data.world import World

SKILLS = (personal.personal, beside.personal, beside.remember, beside.follow)


def made(skill, number, side=Side.TRAIN):
    return skill(World(f"personal/{number}", side, stage=LIKE_PEOPLE))


@pytest.mark.parametrize("side", Side)
def test_what_is_asked_for_was_told(side):
    for number in range(200):
        conversation = made(personal.personal, number, side)
        said = ""
        for turn in conversation.turns:
            if isinstance(turn, User):
                said += turn.text
            elif turn.graded:
                (answer,) = turn.steps
                assert answer.facts
                assert all(fact in said and fact in answer.text for fact in answer.facts)
        assert any(turn.graded for turn in conversation.turns if isinstance(turn, Model))


@pytest.mark.parametrize("side", Side)
def test_no_two_facts_are_said_back_alike(side):
    backs = [each.back.partition("{")[0] for each in personal.FACTS.of(side)]
    assert len(set(backs)) == len(backs)


@pytest.mark.parametrize("skill", SKILLS[1:])
@pytest.mark.parametrize("side", Side)
def test_beside_tools_none_is_called(skill, side):
    for number in range(40):
        conversation = made(skill, number, side)
        assert conversation.tools
        steps = [step for turn in conversation.turns if isinstance(turn, Model) for step in turn.steps]
        assert all(isinstance(step, Say) for step in steps)


def test_no_tool_is_there_that_would_keep_what_is_told():
    for number in range(150):
        tools = beside._errands(World(f"tools/{number}", Side.TRAIN))
        assert not any("contact" in f"{each.tool.name} {each.tool.description}".lower() for each in tools if each.asks)
