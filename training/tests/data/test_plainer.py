"""The fifth stage of training: plain sentences in very many ways, and fewer words at random."""

import re
from collections import Counter
from itertools import chain
from random import Random

import pytest

from training.check_split import contents
from training.data import asks, requests, wild
from training.data.conversation import Model, Say, User
from training.data.kinds import KINDS
from training.data.mentions import MENTIONS
from training.data.mixture import PLAINLY, WIDE, conversation
from training.data.side import LISTS, Side
from training.data.skills import call, personal
from training.data.stages import LAST, PLAINER, WIDER
from training.data.template import expand, slots_of
from training.data.ways import _read, ways
from training.data.world import World

SPLITS = [each for each in LISTS["templates"] if each.later]


def world(seed, stage=PLAINER, side=Side.TRAIN):
    return World(f"plainer/{seed}", side, stage=stage)


@pytest.mark.parametrize(("side", "stage"), [(Side.TRAIN, WIDER), (Side.HELD_OUT, PLAINER)])
def test_before_it_and_in_examinations_nothing_is_drawn_for_it(side, stage):
    w = World("same", side, stage=stage)
    assert not any(w.later(PLAINER, 1.0) for _ in range(9))
    assert w.any_of(asks.REQUESTS) == asks.REQUESTS.of(side)
    assert w.rng.random() == Random("same").random()
    assert not {w.pick(asks.REQUESTS) for _ in range(200)} & set(asks.REQUESTS.later[PLAINER])


def test_most_is_said_in_many_ways_then():
    w = world("pick")
    wide = sum(w.pick(asks.REQUESTS) in asks.REQUESTS.later[PLAINER] for _ in range(600)) / 600
    assert wide == pytest.approx(0.6, abs=0.06)


def test_and_little_in_any_words():
    def share(stage):
        w = world("wild", stage)
        return sum(wild.maybe(w, ("~{verb} ~{noun}",), verb="rate", noun="lamp") is not None for _ in range(800)) / 800

    assert share(PLAINER) == pytest.approx(wild._PLAINER_SHARE, abs=0.03)
    assert share(WIDER) == pytest.approx(wild._SHARE, abs=0.06)


@pytest.mark.parametrize("split", SPLITS, ids=lambda each: each.train[0])
def test_each_has_the_slots_that_one_of_its_list_has(split):
    known = set(chain.from_iterable(map(slots_of, (*split.train, *split.held_out))))
    needed = set.intersection(*map(slots_of, (*split.train, *split.held_out))) & {"v", "text", "first", "second"}
    for each in split.from_stage(LAST):
        assert slots_of(each) <= known | {"a"}
        assert needed <= slots_of(each)


@pytest.mark.parametrize("heading", sorted(_read()))
def test_they_stand_for_many_sentences_without_traces_of_how_they_are_made(heading):
    rng = Random(heading)
    said = {expand(each, rng, {slot: slot for slot in slots_of(each)}) for each in ways(heading) for _ in range(40)}
    assert len(said) > 4 * len(ways(heading))
    assert not [each for each in said if re.search(r"[\[\]{}|]|@[a-z]{3}|\\n", each)]


def test_all_that_is_written_is_used():
    used = {each for split in SPLITS for each in split.from_stage(LAST)} | {*ways("around"), *ways("inside")}
    assert used == {each for heading in _read() for each in ways(heading)}
    assert {*MENTIONS} == {*KINDS}


def test_a_heading_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"expected a heading of ways\.txt .*keyed.*found 'any'"):
        ways("any")


def test_what_stands_around_a_request_leaves_it_whole(monkeypatch):
    monkeypatch.setattr(requests, "_AROUND", 1.0)
    rng, asked = Random("around"), "call {person} now"
    said = {expand(requests.typed_by_somebody(world(seed), asked), rng, {"person": "Ole"}) for seed in range(200)}
    assert all("call Ole now" in each for each in said)
    assert len(said) > 100


def test_values_of_one_kind_are_told_by_their_labels_mostly():
    several = unsaid = 0
    for seed in range(120):
        made = call.told_by_label(world(seed))
        (step, *_) = made.turns[1].steps
        (called,) = step.calls
        tool = next(each for each in made.tools if each.name == called.tool)
        kinds = {str(each["type"]) for each in tool.parameters["properties"].values()}
        assert len(kinds) == 1
        said = made.turns[0].text.casefold()
        told = [name for name in called.arguments if _words(name) in _words(said)]
        if len(called.arguments) > 1:
            several += 1
            unsaid += len(told) < len(called.arguments) - 1  # one may stand before the noun
    assert several > 60
    assert unsaid < 0.1 * several


def _words(text):
    return re.sub("[^a-z0-9]", "", text.casefold())


def test_what_was_never_told_may_be_asked_for_first_of_all():
    first = Counter()
    for seed in range(300):
        asked, answer = personal.personal(world(seed)).turns[:2]
        assert isinstance(asked, User)
        assert isinstance(answer, Model)
        assert isinstance(answer.steps[0], Say)
        first[answer.steps[0].text == personal._UNKNOWN] += 1
        if answer.steps[0].text == personal._UNKNOWN:
            assert asked.text in chain.from_iterable(each.asked for each in personal._FACTS)
    assert first[True] == pytest.approx(300 * personal._FIRST_OF_ALL, abs=20)


def test_its_mixture_has_every_skill_of_the_stage_before():
    assert {skill for skill, _ in WIDE} < {skill for skill, _ in PLAINLY}
    assert {skill for skill, _ in PLAINLY} - {skill for skill, _ in WIDE} == {call.told_by_label}


def test_requests_are_seldom_the_same_twice():
    texts = [
        text
        for seed in range(300)
        for kind, text in contents(conversation(f"again/{seed}", Side.TRAIN, stage=PLAINER))
        if kind == "requests"
    ]
    assert len(set(texts)) > 0.95 * len(texts)
