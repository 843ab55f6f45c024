"""What is asked of a tool can be read out of what was said."""

from dataclasses import replace

from training.data import asks, requests
from training.data.fields import field, mention
from training.data.kinds import ANY_WORDS, KINDS, Value
from training.data.requests import unfinished
from training.data.side import Side
from training.data.tools import make_tool
from training.data.world import World


def test_what_follows_takes_no_mark_from_a_value(monkeypatch):
    ends_in_a_mark = requests.request

    def asked(w, made, values=None, **how):
        found = ends_in_a_mark(w, made, values, **how)
        seen.append(found.text)
        return found

    monkeypatch.setattr(requests, "request", asked)
    again = 0
    for number in range(200):
        w = World(f"{number}", Side.TRAIN)
        seen: list[str] = []
        made = unfinished(w, make_tool(w, count=1, kinds=("message",)))
        said = [value.text for value in made.values.values()]
        assert not made.text.endswith((".", "?", "!", " "))
        assert all(text.casefold() in made.text.casefold() for text in said)
        again += len(seen) > 1
    assert again  # it does come up


def test_some_of_training_say_more_and_ask_for_nothing_more():
    def asked(number, side):
        w = World(f"{number}", side)
        made = make_tool(w)
        return requests.request(w, made)

    trained = [asked(number, Side.TRAIN) for number in range(300)]
    remarked = [each for each in trained if each.text.endswith(asks.REMARKS)]
    assert 25 < len(remarked) < 75
    for each in remarked:
        text = next(each.text.removesuffix(remark) for remark in asks.REMARKS if each.text.endswith(remark))
        assert text.rstrip().endswith((".", "?", "!"))
    assert not any(asked(number, Side.HELD_OUT).text.endswith(asks.REMARKS) for number in range(100))


def test_half_of_those_with_nothing_to_fill_in_say_more():
    worlds = [World(f"{number}", Side.TRAIN) for number in range(200)]
    bare = [requests.request(w, make_tool(w, count=0)).text for w in worlds]
    assert 70 < sum(text.endswith(asks.REMARKS) for text in bare) < 130


def _person(w):
    while not (made := field(w, "lamp", "find", set(), ("person",))).hinted:
        pass
    return made


def test_of_two_values_of_one_kind_each_has_its_label():
    def labelled(number, side, unlike):
        w = World(f"{number}", side)
        made = _person(w)
        text = mention(w, made, Value("Zorblat", "Zorblat"), alone=False, unlike=unlike).casefold()
        return made.label.casefold() in text or made.name.casefold() in text

    assert all(labelled(number, Side.TRAIN, unlike=False) for number in range(100))
    assert not all(labelled(number, Side.TRAIN, unlike=True) for number in range(100))
    assert all(labelled(number, Side.HELD_OUT, unlike=False) for number in range(100))
    assert not all(labelled(number, Side.HELD_OUT, unlike=True) for number in range(100))


def test_a_request_labels_both_of_two_values_of_one_kind():
    def labelled(number, side):
        w = World(f"{number}", side)
        made = make_tool(w, count=2, kinds=("person",))
        text = requests.request(w, made, {each.name: each.draw(w) for each in made.fields}).text.casefold()
        return all(each.label.casefold() in text or each.name.casefold() in text for each in made.fields)

    assert all(labelled(number, side) for number in range(100) for side in Side)


def test_a_value_that_does_not_show_its_kind_is_told_with_words_that_do():
    """Among any words "Zorblat" might be a person as well as a title."""

    def told(number, plain):
        w = World(f"{number}", Side.TRAIN)
        made = replace(_person(w), typed=("vouched for by {v}",), plain=plain)
        text = mention(w, made, Value("Zorblat", "Zorblat"), alone=False)
        labelled = made.label.casefold() in text.casefold() or made.name.casefold() in text.casefold()
        return labelled or "ouched for by Zorblat" in text

    assert all(told(number, plain=True) for number in range(200))
    assert not all(told(number, plain=False) for number in range(200))
    assert KINDS.keys() > ANY_WORDS


def test_more_may_be_left_out_in_training_than_in_what_is_held_out():
    def needed(side):
        return sum(field(World(f"{n}", side), "lamp", "find", set(), ("code",)).required for n in range(600)) / 600

    assert 0.65 < needed(Side.TRAIN) < 0.75
    assert 0.8 < needed(Side.HELD_OUT) < 0.9
