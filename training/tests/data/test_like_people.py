"""The last stage of training is as people have it; what comes before it is as it was."""

import re
from random import Random

import pytest

from training.data.scenarios import SCENARIOS
from training.data.side import Side
from training.data.skills import everyday, parallel
from training.data.stages import LIKE_PEOPLE
from training.data.tools import make_tool
from training.data.world import World


def world(seed, stage=LIKE_PEOPLE):
    return World(f"people/{seed}", Side.TRAIN, stage=stage)


def errand(w, name):
    return everyday.errand_tool(w, next(each for each in SCENARIOS.train if name in each.name))


@pytest.mark.parametrize("stage", [1, 2])
def test_before_it_nothing_is_drawn_for_it(stage):
    w = World("same", Side.TRAIN, stage=stage)
    assert not any(w.like_people(1.0) for _ in range(9))
    assert w.rng.random() == Random("same").random()


def test_what_is_optional_may_be_null_then():
    def nullable(stage):
        fields = [each for seed in range(150) for each in make_tool(world(seed, stage)).fields]
        fields += [each for seed in range(50) for each in errand(world(seed, stage), "set_timer").fields]
        assert not any("nullable" in each.schema for each in fields if each.required)
        return {each.schema.get("nullable", False) for each in fields if not each.required}

    assert nullable(LIKE_PEOPLE) == {True, False}
    assert nullable(2) == {False}


def test_small_numbers_are_words_at_times():
    def said(stage):
        for seed in range(200):
            w = world(seed, stage)
            (minutes, _) = errand(w, "set_timer|start_timer").fields
            value = minutes.draw(w)
            assert value.text == str(value.json) or everyday._NUMBERS[value.json - 1] == value.text
            yield value.text.isalpha()

    assert 5 < sum(said(LIKE_PEOPLE)) < 60
    assert not any(said(2))


def test_beside_a_tool_there_are_more_that_are_about_the_same():
    at = next(number for number, each in enumerate(SCENARIOS.train) if "find_flights" in each.name)
    scenario = SCENARIOS.train[at]
    near = {each.asks for each in SCENARIOS.train[at - 6 : at + 7]} - {scenario.asks}

    def akin(stage):
        made = [(w := world(seed, stage), everyday.errand_tool(w, scenario)) for seed in range(80)]
        tools = [each for w, tool in made for each in everyday.beside(w, scenario, tool) if each.asks]
        return sum(each.asks in near for each in tools)

    assert akin(LIKE_PEOPLE) > 5 * max(1, akin(2))


def test_what_leads_to_two_values_is_said_twice_at_times():
    def texts(stage):
        for seed in range(60):
            w = world(seed, stage)
            if turns := parallel._for_two(w, errand(w, "things_to_do")):
                yield turns[0].text

    twice = re.compile(r" in \S.* and in \S")
    assert any(map(twice.search, texts(LIKE_PEOPLE)))
    assert not any(map(twice.search, texts(2)))


def test_the_only_tool_that_is_there_may_not_be_what_was_asked_for():
    alone = [len(everyday.not_there(world(seed)).tools) == 1 for seed in range(100)]
    before = [len(everyday.not_there(world(seed, 2)).tools) == 1 for seed in range(100)]
    assert sum(alone) > sum(before) + 15
