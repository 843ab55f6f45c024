"""The sixth stage of training: more sentences, and what somebody tells is put together."""

from collections import Counter
from random import Random

import pytest

from training.data import asks, facts, requests
from training.data.conversation import Model, Say, User
from training.data.mixture import FULLY, PLAINLY
from training.data.side import LISTS, Side
from training.data.skills import call, errors, personal
from training.data.stages import FULLER, PLAINER
from training.data.template import slots_of
from training.data.tools import make_tool
from training.data.world import World


def world(seed, stage=FULLER, side=Side.TRAIN):
    return World(f"fuller/{seed}", side, stage=stage)


def said(conversation):
    return [turn.text for turn in conversation.turns if isinstance(turn, User)]


@pytest.mark.parametrize(("side", "stage"), [(Side.TRAIN, PLAINER), (Side.HELD_OUT, FULLER)])
def test_before_it_and_in_examinations_nothing_is_drawn_for_it(side, stage):
    w = World("same", side, stage=stage)
    assert not any(w.later(FULLER, 1.0) for _ in range(9))
    assert w.rng.random() == Random("same").random()
    assert not {w.pick(asks.REQUESTS) for _ in range(300)} & set(asks.REQUESTS.later[FULLER])
    assert not set(w.any_of(asks.REQUESTS)) & set(asks.REQUESTS.later[FULLER])


def test_more_is_said_in_many_ways_then():
    w = world("pick")
    drawn = Counter(w.pick(asks.REQUESTS) for _ in range(900))
    many = {*asks.REQUESTS.later[PLAINER], *asks.REQUESTS.later[FULLER]}
    assert sum(drawn[each] for each in many) / 900 == pytest.approx(0.7, abs=0.05)
    assert drawn.keys() & set(asks.REQUESTS.later[FULLER])
    assert drawn.keys() & set(asks.REQUESTS.later[PLAINER])


def test_what_has_no_other_ways_has_these():
    alone = [each for each in LISTS["templates"] if set(each.later) == {FULLER}]
    assert alone
    for each in alone:
        w = world("alone")
        assert {w.pick(each) for _ in range(300)} & set(each.later[FULLER])


def test_facts_are_put_together_of_words():
    frames, words = facts._read()
    for frame in frames:
        assert all("{v}" in each for each in (*frame.told, frame.back))
        assert not any("{v}" in each for each in frame.asked)
        for text in (*frame.told, *frame.asked, frame.back):
            assert slots_of(text) - {"v"} <= {*words, "done"}
    w = world("facts")
    made = [facts.put_together(w) for _ in range(300)]
    assert len({each.back for each in made}) > 200
    assert {"color", "spot", "person"} <= {each.kind for each in made}
    assert all(facts.value_of(w, each) for each in made)
    assert not [text for each in made for text in (*each.told, *each.asked) if "  " in text or ":" in text]


def test_what_is_asked_for_was_told_and_what_was_not_is_said_so():
    unknown = known = 0
    for seed in range(400):
        told = ""
        for turn in personal.personal(world(seed)).turns:
            if isinstance(turn, User):
                told += turn.text.casefold()  # a name may have lost its capital behind "Hi, "
                continue
            (answer,) = turn.steps
            assert isinstance(answer, Say)
            if turn.graded and answer.text == personal._UNKNOWN:
                unknown += 1
            elif turn.graded:
                known += 1
                assert all(fact.casefold() in told and fact in answer.text for fact in answer.facts)
    assert known > unknown > 60


def test_no_two_that_are_told_are_asked_for_alike_and_none_as_what_is_held_out():
    kept = set(personal.SENTENCES.held_out)
    for seed in range(300):
        made = personal._some(world(seed), 4)
        asked = [each for fact in made for each in fact.asked]
        assert len(set(asked)) == len(asked)
        assert not kept & {*asked, *(each for fact in made for each in fact.told)}


@pytest.mark.parametrize("known", [True, False])
def test_a_fact_that_is_held_out_or_asked_for_like_another_is_drawn_again(monkeypatch, known):
    taken = facts.Fact("person", ("{v} it is",), ("Who is it?",), "it is {v}")
    other = facts.Fact("person", ("{v} sings",), ("Who sings?",), "{v} sings")
    drawn = iter([taken, other])
    monkeypatch.setattr(personal, "put_together", lambda _: next(drawn))
    monkeypatch.setattr(personal, "_HELD_OUT", () if known else ("Who is it?",))
    assert personal._another(world("any"), [taken] if known else []) is other


def test_what_is_asked_inside_a_longer_request_is_said_in_few_words(monkeypatch):
    def texts(share):
        monkeypatch.setattr(requests, "_INSIDE", share)
        return [requests.unfinished(w := world(seed), make_tool(w, count=1)).text for seed in range(150)]

    few, many = texts(1.0), texts(0.0)
    assert not [each for each in few if "\n" in each or any(remark.rstrip(".") in each for remark in asks.REMARKS)]
    assert sum(map(len, few)) < 0.9 * sum(map(len, many))
    assert len(set(few)) > 140


def test_a_label_tells_which_value_of_a_kind_is_meant():
    unsaid = several = 0
    for seed in range(250):
        made = call.told_by_label(world(seed))
        step = made.turns[1].steps[0].calls[0]
        text = "".join(each for each in said(made)[0].casefold() if each.isalnum())
        for name in step.arguments:
            several += 1
            unsaid += "".join(each for each in name.casefold() if each.isalnum()) not in text
    assert several > 300
    assert unsaid < 0.02 * several


def test_what_is_reported_is_what_the_tool_said():
    for seed in range(200):
        turns = errors.give_up(world(seed)).turns
        answer = next(step for turn in turns if isinstance(turn, Model) for step in turn.steps if isinstance(step, Say))
        assert ".." not in answer.text


def test_its_mixture_has_every_skill_of_the_stage_before():
    assert {skill for skill, _ in FULLY} == {skill for skill, _ in PLAINLY}
