"""The seventh stage of training: values of the shapes that people write."""

import re
from random import Random

import pytest

from training import check_split
from training.data import fields, kinds, values
from training.data.kinds import KINDS, value
from training.data.side import Side
from training.data.stages import FULLER, LIFELIKE
from training.data.template import expand, slots_of
from training.data.world import World

WRITTEN = [kind for kind in values._read() if kind in KINDS]


def world(seed, stage=LIFELIKE, side=Side.TRAIN):
    return World(f"values/{seed}", side, stage=stage)


def some(kind, count=300, **how):
    """Values of these templates alone."""
    w, found = world(kind), []
    while len(found) < count:
        if (made := values.as_written(w, kind, **how)) is not None:
            found.append(made)
    return found


@pytest.mark.parametrize(("side", "stage"), [(Side.TRAIN, FULLER), (Side.HELD_OUT, LIFELIKE)])
def test_before_it_and_in_examinations_nothing_is_drawn_for_it(side, stage):
    w = World("same", side, stage=stage)
    assert {values.as_written(w, kind) for kind in WRITTEN} == {None}
    assert values.counted(w, "2") == "2"
    assert w.rng.random() == Random("same").random()


def test_every_template_is_of_a_kind_and_can_be_filled_in():
    assert set(WRITTEN) <= set(KINDS)
    w = world("all")
    slots = values._Slots(w)
    for kind in WRITTEN:
        for template in values._read()[kind]:
            assert expand(template, w.rng, slots)
    for template in values.whole_templates():
        assert slots_of(template) <= set(values._DRAWN)


@pytest.mark.parametrize("kind", WRITTEN)
def test_values_are_many_and_clean(kind):
    made = some(kind)
    assert not [text for text in made if "  " in text or text != text.strip() or re.search(r'[][{}|"]', text)]
    assert not [text for text in made if re.search(r"\b[Aa] [aeiou]", text)]
    assert len(set(made)) > (150 if kind == "language" else 100 if kind in {"date", "time"} else 270)


def test_names_are_not_only_of_one_shape():
    names = some("person", 600)
    assert 60 < sum("-" in name for name in names) < 250
    assert sum("'" in name for name in names) > 15
    assert sum(name.islower() for name in names) > 20
    assert sum(len(name.split()) > 2 for name in names) > 150


def test_sentences_begin_with_names_and_hold_what_is_a_value_alone():
    sentences = " / ".join(some("message", 600))
    for inside in (r"\d+:\d\d", "Monday", "@", r"\bnext \w+", r", ", " and "):
        assert re.search(inside, sentences)


@pytest.mark.parametrize("kind", ["person", "title", "word", "email", "code"])
def test_in_a_row_none_has_in_it_what_stands_between_them(kind):
    assert not [text for text in some(kind, apart=True) if re.search(r", | and | or |&", text)]


def test_lists_have_values_apart(monkeypatch):
    asked = []
    monkeypatch.setattr(fields, "value", lambda kind, w, *, apart=False: asked.append(apart) or value(kind, w))
    fields._list(world("list"), "lamp").draw(world("drawn"))
    assert asked
    assert all(asked)


def test_a_name_with_a_mark_inside_is_put_between_other_marks(monkeypatch):
    monkeypatch.setattr(kinds, "as_written", lambda w, kind, **_: "Sean O'Word")
    said = {value(KINDS["person"], world(seed)).text for seed in range(200)}
    assert any('"' in text for text in said)
    assert not any("'Sean" in text for text in said)


def test_small_numbers_are_words_at_times():
    drawn = [value(KINDS["count"], world(seed)) for seed in range(900)]
    words = [each for each in drawn if each.text.isalpha()]
    assert words
    assert all(values._COUNTS[each.json] == each.text for each in words)
    assert all(str(each.json) == each.text for each in drawn if each not in words)


def test_more_is_optional_than_in_the_stages_before():
    def required(stage):
        made = (fields._plain(world(seed, stage), "lamp", "use", "person") for seed in range(600))
        return sum(each.required for each in made) / 600

    assert required(LIFELIKE) == pytest.approx(required(FULLER) * 0.8, abs=0.06)


def test_a_template_that_says_what_is_held_out_is_found(monkeypatch):
    held_out = {"No {noun} until {day}"}
    assert not check_split.said_in_another_way(values.whole_templates(), held_out)
    monkeypatch.setattr(values, "_read", lambda: {"parts": ("when: until {day}",), "phrase": ("no {thing} {when}",)})
    values._parts.cache_clear()
    found = check_split.said_in_another_way(values.whole_templates(), held_out)
    values._parts.cache_clear()
    assert found
