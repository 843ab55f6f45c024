"""Tools of everyday life in conversations: what is asked, what is meant, and what is beside them."""

import pytest

from training.data.conversation import Calls, Say
from training.data.errand_kinds import ERRAND_KINDS, errand_kind
from training.data.fields import Field
from training.data.further import DECLINE
from training.data.kinds import KINDS
from training.data.requests import request
from training.data.scenario import read
from training.data.scenarios import SCENARIOS, UNUSUAL
from training.data.side import Side, Split, side_of
from training.data.skills import chain, everyday, parallel
from training.data.tools import MadeTool, Verb, make_tool
from training.data.world import World

_TYPES = {"string": str, "integer": int, "number": (int, float), "array": list}


def _world(seed, side=Side.TRAIN):
    return World(f"errands/{seed}", side, 1.0, 0.0)


def _tool(fields, asks):
    made = make_tool(_world("tool"))
    return MadeTool(made.tool, Verb(("do",)), "thing", tuple(fields), tuple(asks))


def _field(label, kind):
    of = errand_kind(kind)
    return Field(label, label, dict(of.schema), True, of.draw)


@pytest.mark.parametrize("kind", [*ERRAND_KINDS, *KINDS])
def test_a_kind_draws_values_of_its_type_that_are_said_as_they_are(kind):
    of = errand_kind(kind)
    for seed in range(50):
        made = of.draw(_world(seed))
        assert isinstance(made.json, _TYPES[of.schema["type"]])
        for each in made.json if isinstance(made.json, list) else [made.json]:
            assert str(each) in made.text or float(made.text) == each


@pytest.mark.parametrize("kind", ["file", "ticker", "zip"])
def test_what_is_made_up_is_of_the_side_that_says_it(kind):
    assert {side_of(errand_kind(kind).draw(_world(seed)).text) for seed in range(50)} == {Side.TRAIN}


def test_what_is_meant_is_an_argument_though_nobody_says_it():
    on = Field("on", "on", {"type": "boolean"}, True, everyday._not_said)
    many = Field("many", "many", {"type": "integer"}, True, everyday._not_said)
    speed = Field("speed", "speed", {"type": "string", "enum": ["low", "high"]}, True, everyday._not_said)
    made = _tool([_field("room", "word"), on, many, speed], ["Both fans in the {room}! => on=true, many=2, speed=high"])
    asked = request(_world("fans"), made)
    assert asked.arguments == {"room": asked.values["room"].json, "on": True, "many": 2, "speed": "high"}
    assert asked.arguments["room"] in asked.text
    assert "=" not in asked.text


def test_people_type_the_same_in_several_manners_in_training_alone():
    made = _tool([_field("city", "place")], ["How are things in {city}?"])

    def manners(side):
        asked = (request(_world(seed, side), made) for seed in range(100))
        return {each.text.replace(each.values["city"].text, "X") for each in asked}

    assert manners(Side.HELD_OUT) == {"How are things in X?"}
    assert {"How are things in X?", "how are things in X?", "How are things in X"} < manners(Side.TRAIN)


def test_a_tool_that_is_not_there_is_not_called():
    for seed in range(30):
        made = everyday.not_there(_world(seed))
        assert made.turns[1].steps == (DECLINE,)
        assert made.tools


def test_one_request_for_two_values_is_two_calls():
    made = _tool([_field("city", "place")], ["How are things in {city}?", "Say that {city} is fine. => sure=true"])
    user, model = next(turns for seed in range(9) if (turns := parallel._for_two(_world(seed), made)))
    calls, said = model.steps
    assert isinstance(calls, Calls)
    assert isinstance(said, Say)
    first, second = (each.arguments["city"] for each in calls.calls)
    assert first != second
    assert 0 < user.text.index(first) < user.text.index(second)


@pytest.mark.parametrize("kind", ["things", "query", "email"])
def test_what_has_no_end_that_shows_is_not_asked_for_twice_at_once(kind):
    made = _tool([_field("what", kind)], ["Look for {what}."])
    asked = [turns[0].text for seed in range(60) if (turns := parallel._for_two(_world(seed), made))]
    if kind == "things":
        assert not asked
    else:
        assert all(len(text.removeprefix("Look for both ").split()) <= 7 for text in asked)


def test_beside_a_tool_there_is_none_that_may_do_the_same(monkeypatch):
    wanted, same, other = read(
        "[book_hotel|reserve_room] | Book a hotel room. | town:place\nA room in {town}.\n\n"
        "hotel_room | Books a room in a hotel. | place:place\nA hotel in {place}.\n\n"
        "hotel_bill | What a hotel costs. | nights:count\nWhat do {nights} nights cost?"
    )
    monkeypatch.setattr(everyday, "SCENARIOS", Split((wanted, same, other), SCENARIOS.held_out))
    made = everyday.errand_tool(_world("wanted"), wanted)
    beside = [each for seed in range(100) for each in everyday.beside(_world(seed), wanted, made)]
    assert {each.asks for each in beside if each.asks} == {wanted.asks, other.asks}


def test_errands_are_in_chains_and_parallel_calls_of_training_alone(monkeypatch):
    drawn = []
    for module in (chain, parallel):
        monkeypatch.setattr(module, "errand", lambda w: drawn.append(w.side) or everyday.errand(w))
    for skill in (chain.two_calls, parallel.two_tools, parallel.same_tool):
        drawn.clear()
        for side in Side:
            for seed in range(20):
                skill(_world(seed, side))
        assert set(drawn) == {Side.TRAIN}, skill


def test_what_is_meant_and_not_said_is_not_asked_for_twice_at_once():
    made = _tool([Field("on", "on", {"type": "boolean"}, True, everyday._not_said)], ["Fan on! => on=true"])
    assert parallel._for_two(_world("fan"), made) == []


@pytest.mark.parametrize("scenario", SCENARIOS.train, ids=lambda each: each.name)
def test_every_errand_can_be_in_every_skill_that_has_errands(monkeypatch, scenario):
    monkeypatch.setattr(everyday, "SCENARIOS", Split((scenario, *SCENARIOS.train[:3]), SCENARIOS.held_out))
    for module in (chain, parallel):
        monkeypatch.setattr(module, "errand", lambda w: everyday.errand_tool(w, scenario))
        monkeypatch.setattr(module, "_ERRANDS", 1.0)
    for skill in (chain.two_calls, parallel.same_tool, everyday.everyday, everyday.not_there):
        for seed in range(3):
            assert skill(_world(seed)).turns


def test_an_unusual_errand_is_asked_for_among_others_of_its_kind():
    names = set()
    for seed in range(100):
        made = everyday.unusual(_world(seed, Side.HELD_OUT))
        called = made.turns[1].steps[0].calls[0].tool
        names |= {each.name.lower().replace("_", "").replace("-", "") for each in made.tools}
        assert [each.name for each in made.tools].count(called) == 1
        assert 1 <= len(made.tools) <= 8
        assert not made.asides
    assert names == {each.name.replace("_", "") for each in UNUSUAL}
