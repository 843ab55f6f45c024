"""Tools of everyday life that were written by hand: what they say fits what they declare."""

import pytest

from training.data.kinds import KINDS
from training.data.scenario import Scenario, read
from training.data.scenarios import SCENARIOS
from training.data.template import slots_of

ALL = (*SCENARIOS.train, *SCENARIOS.held_out)


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_every_request_says_what_is_required_and_nothing_that_is_not_declared(scenario: Scenario):
    declared = {field.removeprefix("?").partition(":")[0] for field in scenario.fields}
    required = {field.partition(":")[0] for field in scenario.fields if not field.startswith("?")}
    for ask in scenario.asks:
        assert required <= slots_of(ask) <= declared, ask


@pytest.mark.parametrize("scenario", ALL, ids=lambda each: each.name)
def test_every_field_is_of_a_kind_that_there_is_and_said_somewhere(scenario: Scenario):
    said = set().union(*map(slots_of, scenario.asks))
    for field in scenario.fields:
        name, _, kind = field.removeprefix("?").partition(":")
        assert name in said, field
        assert kind in KINDS or "/" in kind, field


def test_no_two_scenarios_ask_in_the_same_words():
    asks = [ask for each in ALL for ask in each.asks]
    assert len(set(asks)) == len(asks)


def test_training_has_many_ways_to_ask_for_many_things():
    """With forty scenarios, how each of them is asked for was known by heart."""
    assert len(SCENARIOS.train) > 140
    assert sum(len(each.asks) for each in SCENARIOS.train) > 500


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
