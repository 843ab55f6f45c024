"""Forms as people have them: what is said is what is to be filled in."""

import json

import jsonschema
import pytest

from training.data.conversation import Calls
from training.data.scenario import told
from training.data.side import Side
from training.data.skills import forms
from training.data.skills.forms import FORMS
from training.data.stages import LIKE_PEOPLE
from training.data.template import slots_of
from training.data.world import World

ALL = (*FORMS.train, *forms.WIDE_FORMS, *FORMS.held_out)


def made(skill, number, side=Side.TRAIN):
    return skill(World(f"forms/{number}", side, stage=LIKE_PEOPLE))


def labels(form):
    """Of each field what a text calls it, and whether it is required."""
    return {each.removeprefix("?").partition(":")[0].split(".")[-1]: each[0] != "?" for each in form.fields}


@pytest.mark.parametrize("form", ALL, ids=lambda each: each.name)
def test_every_text_says_what_is_required_and_nothing_that_is_not_asked_for(form):
    fields = labels(form)
    assert len(fields) == len(form.fields)
    for ask in form.asks:
        said, meant = told(ask)
        assert {name for name, needed in fields.items() if needed} <= slots_of(said) | set(meant) <= set(fields), ask


@pytest.mark.parametrize("side", Side)
def test_what_is_filled_in_fits_the_schema(side):
    seen = set()
    for number in range(150):
        conversation = made(forms.as_call, number, side)
        form = conversation.tools[0]
        for turns in (conversation.turns, *conversation.asides):
            (calls,) = turns[1].steps
            assert isinstance(calls, Calls)
            jsonschema.validate(calls.calls[0].arguments, form.parameters | {"additionalProperties": False})
            seen |= {type(each) for each in calls.calls[0].arguments.values()}
    assert seen >= {str, int, dict, list}, "objects and lists are among them"


@pytest.mark.parametrize("side", Side)
def test_the_answer_in_json_fits_the_schema_of_the_system_turn(side):
    for number in range(100):
        conversation = made(forms.as_json, number, side)
        schema = json.loads(conversation.system.partition("\n")[2])
        for turns in (conversation.turns, *conversation.asides):
            answer = json.loads(turns[1].steps[0].text)
            jsonschema.validate(answer, schema)
            assert list(answer) == [name for name in schema["properties"] if name in answer], "in the schema's order"


def test_words_and_names_that_are_filled_in_were_said():
    for number in range(200):
        conversation = made(forms.as_json, number)
        said = conversation.turns[0].text
        answer = json.loads(conversation.turns[1].steps[0].text)
        schema = json.loads(conversation.system.partition("\n")[2])
        for name, value in answer.items():
            options = json.dumps(schema["properties"][name])
            if isinstance(value, str) and "enum" not in options:
                assert value in said


def test_several_at_once_are_a_list():
    lists = [
        answer
        for number in range(100)
        for answer in [made(forms.as_call, number).turns[1].steps[0].calls[0].arguments]
        if isinstance(next(iter(answer.values())), list) and isinstance(next(iter(answer.values()))[0], dict)
    ]
    assert {len(next(iter(answer.values()))) for answer in lists} == {1, 2, 3}


def test_in_training_alone_there_is_more_to_read_of_the_same_form():
    assert any(made(forms.as_call, number).asides for number in range(20))
    assert not any(made(forms.as_call, number, Side.HELD_OUT).asides for number in range(20))
