"""The eighth stage of training: what agents hand to computers, and numbers in words."""

from random import Random

import pytest

from training import check_split
from training.data import kinds, values
from training.data import world as worlds
from training.data.conversation import User
from training.data.errand_kinds import _OF_TEMPLATES, errand_kind
from training.data.requests import request
from training.data.scenarios import AGENTS, MORE
from training.data.side import Side
from training.data.skills import call, everyday
from training.data.stages import HANDS_ON, LIFELIKE
from training.data.world import World


def world(seed, stage=HANDS_ON, side=Side.TRAIN):
    return World(f"hands on/{seed}", side, stage=stage)


@pytest.mark.parametrize(("side", "stage"), [(Side.TRAIN, LIFELIKE), (Side.HELD_OUT, HANDS_ON)])
def test_before_it_and_in_examinations_nothing_is_drawn_for_it(side, stage):
    w = World("same", side, stage=stage)
    assert not any(w.later(HANDS_ON, 1.0) for _ in range(9))
    assert w.rng.random() == Random("same").random()


def test_its_tools_are_asked_for_then_alone():
    def share(stage):
        return sum(everyday.drawn(world(seed, stage)) in AGENTS for seed in range(400)) / 400

    assert share(HANDS_ON) == pytest.approx(everyday._OF_AGENTS, abs=0.08)
    assert share(LIFELIKE) == 0


@pytest.mark.parametrize("scenario", AGENTS, ids=lambda each: each.name)
def test_each_can_be_asked_for_and_the_value_is_in_the_request_to_the_letter(scenario):
    for seed in range(30):
        w = world(seed)
        made = everyday.errand_tool(w, scenario)
        asked = request(w, made)
        assert {each.name for each in made.fields if each.required} <= asked.arguments.keys()
        for name, value in asked.values.items():
            if isinstance(value.json, str):
                assert value.text in asked.text
                assert asked.arguments[name] in value.text


@pytest.mark.parametrize("scenario", AGENTS, ids=lambda each: each.name)
def test_beside_one_are_others_of_its_list_or_such_as_share_no_word_with_it(scenario):
    for seed in range(12):
        for other in everyday._beside_more(world(seed), scenario):
            assert other is not scenario
            assert other in AGENTS or not everyday._called(other) & everyday._called(scenario)
            assert other not in MORE


@pytest.mark.parametrize("kind", [*_OF_TEMPLATES, "gloss"])
def test_what_is_put_together_is_various_and_clean(kind):
    w = world(kind)
    made = [values.of_kind(w, kind) for _ in range(300)]
    assert not [text for text in made if "  " in text or text != text.strip() or any(each in text for each in '{}"[]|')]
    assert not [text for text in made if " a A" in f" {text}" or " a I" in f" {text}"]
    assert len(set(made)) > 150


def test_commands_have_options_and_paths_and_queries_have_conditions():
    w = world("shapes")
    commands = [values.of_kind(w, "command") for _ in range(300)]
    assert sum(" -" in text for text in commands) > 60
    assert sum("/" in text for text in commands) > 40
    assert sum(len(text.split()) > 2 for text in commands) > 90
    queries = [values.of_kind(w, "sql") for _ in range(300)]
    assert sum(" where " in text.lower() for text in queries) > 60


def test_numbers_are_said_in_words():
    said = values._ALL
    assert [said[each] for each in ("0", "13", "20", "41", "99", "100", "300", "1000", "9000")] == [
        "zero",
        "thirteen",
        "twenty",
        "forty-one",
        "ninety-nine",
        "a hundred",
        "three hundred",
        "a thousand",
        "nine thousand",
    ]
    assert set(map(str, range(101))) <= said.keys()
    w = world("numbers")
    for _ in range(50):
        number, word = values.any_counted(w)
        assert said[str(number)] == word


def test_no_large_number_that_is_said_in_words_is_held_out():
    assert {each for each in values._ALL if int(each) >= check_split._SHARED_NUMBERS} == worlds._IN_WORDS
    held_out = world("numbers", side=Side.HELD_OUT)
    assert not any(map(held_out.may_say, worlds._IN_WORDS))
    assert world("numbers").may_say("3000")


def test_larger_numbers_are_words_in_this_stage_alone():
    def words(stage):
        w = world("counted", stage)
        return sum(values.counted(w, "41") == "forty-one" for _ in range(300))

    assert words(HANDS_ON) == pytest.approx(300 * values._COUNTED, abs=25)
    assert words(LIFELIKE) == 0


def test_what_says_of_what_sort_a_thing_is_is_no_part_of_its_name():
    w = world("gloss")
    made = [kinds.quoted(w, "Wenlo") for _ in range(400)]
    assert {each.json for each in made} == {"Wenlo"}
    assert sum(each.text.startswith('"Wenlo" (a ') for each in made) > 10
    assert sum(each.text.startswith('"Wenlo", ') for each in made) > 3


def test_names_in_other_scripts_stand_in_quotes_at_times():
    def quoted(stage):
        found = 0
        for seed in range(200):
            (asked, *_) = (each.text for each in call.copy_foreign(world(seed, stage)).turns if isinstance(each, User))
            found += any(f'"{letter}' in asked or f'{letter}"' in asked for letter in asked if ord(letter) > 0x2FF)
        return found

    assert quoted(HANDS_ON) > quoted(LIFELIKE) + 30


def test_what_is_taught_of_them_has_no_name_that_is_held_out(monkeypatch):
    assert set(AGENTS) <= set(check_split.TAUGHT)
    assert errand_kind("command").draw(world("drawn")).text
