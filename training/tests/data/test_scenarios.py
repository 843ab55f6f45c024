"""Tools of everyday life that were written by hand: what they say fits what they declare."""

import pytest

from training.data.errand_kinds import ERRAND_KINDS
from training.data.kinds import KINDS
from training.data.scenario import Scenario, read, told
from training.data.scenarios import MORE, SCENARIOS, UNUSUAL
from training.data.template import slots_of

ALL = (*SCENARIOS.train, *MORE, *SCENARIOS.held_out, *UNUSUAL)


def _fields(scenario: Scenario) -> dict[str, str]:
    parts = (field.removeprefix("?").partition(":") for field in scenario.fields)
    return {name: kind for name, _, kind in parts}


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_every_request_says_what_is_required_and_nothing_that_is_not_declared(scenario: Scenario):
    required = {field.partition(":")[0] for field in scenario.fields if not field.startswith("?")}
    for ask in scenario.asks:
        said, meant = told(ask)
        assert required <= slots_of(said) | set(meant) <= set(_fields(scenario)), ask
        assert not slots_of(said) & set(meant), ask


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_what_is_meant_and_not_said_is_a_value_that_there_can_be(scenario: Scenario):
    kinds = _fields(scenario)
    for ask in scenario.asks:
        said, meant = told(ask)
        assert not any(kinds[name] == "bool" for name in slots_of(said)), ask
        for name, value in meant.items():
            options = ["true", "false"] if kinds[name] == "bool" else kinds[name].split("/")
            assert value in options or len(options) == 1, ask


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_every_field_is_of_a_kind_that_there_is_and_said_somewhere(scenario: Scenario):
    said = set().union(*(slots_of(text) | set(meant) for text, meant in map(told, scenario.asks)))
    for name, kind in _fields(scenario).items():
        assert name in said, name
        assert kind in {*KINDS, *ERRAND_KINDS, "bool"} or "/" in kind, kind


def test_no_two_scenarios_ask_in_the_same_words():
    for some in ((*SCENARIOS.train, *SCENARIOS.held_out, *UNUSUAL), (*MORE, *SCENARIOS.held_out, *UNUSUAL)):
        asks = [told(ask)[0] for each in some for ask in each.asks]
        assert len(set(asks)) == len(asks)


def test_training_has_many_ways_to_ask_for_many_things():
    """With forty scenarios, how each of them is asked for was known by heart."""
    assert len(SCENARIOS.train) > 400
    assert sum(len(each.asks) for each in SCENARIOS.train) > 1900


def test_the_short_form_is_read():
    text = """
    [play|start]_song | Play a song. | song:title ?loudness:low/high
    Play {song}.
    I want "{song}", {loudness}.

    stop | Stop. | x:count
    Stop {x}!
    """
    song, stop = read("\n".join(line.strip() for line in text.splitlines()))
    assert song == Scenario(
        "[play|start]_song",
        "Play a song.",
        ("song:title", "?loudness:low/high"),
        ("Play {song}.", 'I want "{song}", {loudness}.'),
    )
    assert stop.asks == ("Stop {x}!",)


@pytest.mark.parametrize("block", ["play | Play it.\nPlay {x}.", "play | Play it. | x:count"])
def test_a_block_that_lacks_something_is_refused(block: str):
    with pytest.raises(ValueError, match=r"expected 'name \| description \| fields' and requests below it"):
        read(block)


def test_what_a_request_means_stands_behind_an_arrow():
    assert told("Lamp off, {room}. => on=false, speed=high") == ("Lamp off, {room}.", {"on": "false", "speed": "high"})
    assert told("List them.") == ("List them.", {})
