"""The fourth stage of training: more of what people ask and say, in the widest manner."""

import re
from random import Random

import pytest

from training.data import anything, suite
from training.data.conversation import Calls, Model, Say, User
from training.data.scenarios import MORE
from training.data.side import Side
from training.data.skills import chain, errand_chain, everyday, forms, personal, small_talk
from training.data.stages import LIKE_PEOPLE, WIDER
from training.data.template import expand, slots_of
from training.data.world import World


def world(seed, stage=WIDER, side=Side.TRAIN):
    return World(f"wider/{seed}", side, stage=stage)


@pytest.mark.parametrize(("side", "stage"), [(Side.TRAIN, LIKE_PEOPLE), (Side.HELD_OUT, WIDER)])
def test_before_it_and_in_examinations_nothing_is_drawn_for_it(side, stage):
    w = World("same", side, stage=stage)
    assert not any(w.later(WIDER, 1.0) for _ in range(9))
    assert w.rng.random() == Random("same").random()


def test_its_tools_are_asked_for_then_alone():
    def share(stage):
        return sum(everyday.drawn(world(seed, stage)) in MORE for seed in range(400)) / 400

    assert share(WIDER) == pytest.approx(everyday._MORE, abs=0.08)
    assert share(LIKE_PEOPLE) == 0


@pytest.mark.parametrize("scenario", MORE, ids=lambda each: each.name)
def test_beside_one_of_its_tools_are_those_of_its_list_or_such_as_share_no_word_with_it(scenario):
    for seed in range(12):
        w = world(seed)
        for other in everyday._beside_more(w, scenario):
            assert other is not scenario
            assert other in MORE or not everyday._called(other) & everyday._called(scenario)


def test_where_such_a_tool_is_missing_the_only_other_one_cannot_stand_in_for_it():
    music = next(each for each in MORE if "play_music" in each.name)
    others = {each.name for seed in range(60) for each in everyday._beside_more(world(seed), music)}
    assert not any("play_song" in name for name in others)
    assert any("delete_file" in name for name in others)


@pytest.mark.parametrize("seed", range(150))
def test_any_two_errands_are_joined_by_what_the_first_gives(seed):
    w = world(seed)
    both = errand_chain._joined(w)
    (ask,) = both.asks
    needed = {each.partition(":")[0] for one in (both.first, both.second) for each in one.fields if each[0] != "?"}
    assert needed - {both.handed} <= slots_of(ask)
    assert both.handed not in slots_of(ask)
    assert ask[0] == ask[0].upper()


def test_what_is_joined_is_called_one_after_the_other(monkeypatch):
    monkeypatch.setattr(errand_chain, "_JOINED", 1.0)
    bare = 0
    for seed in range(80):
        made = errand_chain.two_errands(world(seed))
        first, second, said = made.turns[1].steps
        assert isinstance(first, Calls)
        assert isinstance(second, Calls)
        assert isinstance(said, Say)
        reply = first.calls[0].reply
        bare += isinstance(reply, str)
        found = next(iter(reply.values())) if isinstance(reply, dict) else reply
        assert str(found) in map(str, second.calls[0].arguments.values())
    assert 10 < bare < 75


def test_of_forms_half_are_new_and_more_are_for_several():
    def drawn(stage):
        made = [forms._drawn(world(seed, stage)) for seed in range(300)]
        return sum(each.texts in {form.asks for form in forms.WIDE_FORMS} for each in made), sum(
            bool(each.several) for each in made
        )

    (new, several), (none, fewer) = drawn(WIDER), drawn(LIKE_PEOPLE)
    assert new == pytest.approx(150, abs=30)
    assert none == 0
    assert several > 1.5 * fewer


def test_what_is_asked_about_anything_is_nothing_that_can_be_done():
    asked = [anything.ask(world(seed)) for seed in range(800)]
    assert len(set(asked)) > 780
    assert not any(re.match(r"(?i)(say|repeat|call|remember|note)\b", each) for each in asked)
    assert not any("  " in each or "{" in each or "[" in each for each in asked)


def test_no_order_is_one_that_can_be_done(monkeypatch):
    monkeypatch.setattr(anything, "_ASKED", ("{v} it",))
    monkeypatch.setattr(anything.common, "VERBS", ("repeat", "paint"))
    assert {anything.ask(world(seed)) for seed in range(20)} == {"find it", "paint it"}


def test_talk_is_answered_as_it_was_before_and_says_nothing_that_is_held_out():
    held_out = {
        _plain(expand(each, Random(seed), {}))
        for said in small_talk._SAID
        for each in said.held_out
        for seed in range(40)
    }
    answers = {answer for _, _, answer in small_talk._TALK}
    assert answers < {answer for answer, _ in small_talk._MORE_TALK}
    said = {
        _plain(expand(each, Random(seed), {}))
        for _, talk in small_talk._MORE_TALK
        for each in talk
        for seed in range(300)
    }
    assert len(said) > 3000
    assert not said & held_out


def _plain(text):
    return " ".join(re.findall(r"\w+", text.lower()))


def test_what_the_suite_says_is_said_again_in_other_words(monkeypatch):
    monkeypatch.setattr(small_talk, "_ANYTHING", 0.0)
    monkeypatch.setattr(small_talk, "_MORE_TALK", (("Hello!", ("[Hello|Hi there]", "About cats")),))
    said = {small_talk._wider(world(seed))[0] for seed in range(60)}
    assert {each.lower() for each in said} == {"hi there"}
    assert "hello" in suite.PROMPTS


def test_what_was_not_told_is_not_known():
    found = 0
    for seed in range(200):
        made = personal.personal(world(seed))
        for asked, answer in zip(made.turns[::2], made.turns[1::2], strict=True):
            assert isinstance(asked, User)
            assert isinstance(answer, Model)
            if answer.steps[0].text == personal._UNKNOWN:
                found += 1
                (fact,) = {each.kind for each in personal._FACTS if asked.text in each.asked}
                noted = " ".join(step.text for one in made.turns[1::2] for step in one.steps if "Noted" in step.text)
                told = {each.kind for each in personal._FACTS if re.search(each.back.replace("{v}", ".+"), noted)}
                assert told
                assert fact not in told
    assert found > 20


def test_steps_of_a_chain_are_put_together(monkeypatch):
    monkeypatch.setattr(chain, "_WIDER", 1.0)
    texts = [chain.two_calls(world(seed)).turns[0].text for seed in range(60)]
    assert sum("Part two:" in each or "To close," in each or "To end with," in each for each in texts) > 5
    assert not any("{" in each or "|" in each for each in texts)
