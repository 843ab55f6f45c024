"""Sentences with any words in between."""

from training.data import suite
from training.data.phrases import KEYED, KEYED_FORMS
from training.data.side import LISTS, Side, side_of
from training.data.skills import call
from training.data.wild import _filled, _unlike_held_out, put
from training.data.world import World


def test_only_training_has_them():
    held_out = {put(World(f"{n}", Side.HELD_OUT), KEYED, ("wild ~{label} ~{v}",), label="a", v="b") for n in range(99)}
    trained = [put(World(f"{n}", Side.TRAIN), KEYED, ("wild ~{label} ~{v}",), label="a", v="b") for n in range(300)]
    assert not any(text.lower().startswith("wild") for text in held_out)
    assert 105 < sum(text.lower().startswith("wild") for text in trained) < 165


def test_words_come_in_between_and_slots_stay():
    made = {_filled(World(f"{n}", Side.TRAIN), "~{label} ~({v}). ~") for n in range(200)}
    assert len(made) > 150
    assert all(text.count("{label}") == text.count("({v}).") == 1 for text in made)
    assert not any("~" in text or "  " in text for text in made)


def test_what_leads_from_a_value_to_its_label_is_a_word_for_that():
    made = {_filled(World(f"{n}", Side.TRAIN), "{v} % ^ {label}.") for n in range(300)}
    assert len(made) > 200
    leads = {text.removesuffix(" {label}.").split(" ", 2)[2] for text in made}
    assert {"as", "for the", "into its"} < leads
    assert not any(mark in text for text in made for mark in "%^~")


def test_none_is_a_template_that_is_held_out():
    held_out = {template for each in LISTS["templates"] for template in each.held_out}
    for number in range(300):
        made = _unlike_held_out(World(f"{number}", Side.TRAIN), "~{v} ~{label}")
        assert made not in held_out
        assert side_of(made) is Side.TRAIN


def test_where_a_value_begins_and_ends_can_be_seen():
    for number in range(200):
        told = put(World(f"{number}", Side.TRAIN), KEYED, ("wild ~{v} ~{label}",), label="title", v="one two")
        assert not told.lower().startswith("wild") or '"one two"' in told
        told = put(World(f"{number}", Side.TRAIN), KEYED, ("wild ~{label} ~{v}",), label="title", v="one two")
        assert not told.lower().startswith("wild") or told.endswith('"one two"')
        quoted = put(World(f"{number}", Side.TRAIN), KEYED, ('wild ~"{v}" ~{label}',), label="title", v="one two")
        assert '""' not in quoted
        told = put(World(f"{number}", Side.TRAIN), KEYED, ("wild ~{v} ~{label}",), label="title", v="One Two")
        assert not told.lower().startswith("wild") or '"' not in told  # what follows is in small letters
        told = put(World(f"{number}", Side.TRAIN), KEYED, ("wild {v} ^ {label}",), label="title", v="one two")
        assert '"' not in told  # nor are there any words in between
        for own in ('"one" two', "one two, three"):  # in quotes of its own, or several values in a row
            told = put(World(f"{number}", Side.TRAIN), KEYED, ("wild ~{label} ~{v}",), label="title", v=own)
            assert not told.lower().startswith("wild") or told.endswith(f" {own}")
    assert any("{v}" in form for form in KEYED_FORMS)


def test_requests_use_them():
    texts = [call.one_call(World(f"{n}", Side.TRAIN)).turns[0].text for n in range(200)]
    assert len(set(texts)) == 200


def test_what_slots_and_words_make_together_is_not_what_the_standard_suite_says():
    for number in range(100):
        told = put(World(f"{number}", Side.TRAIN), KEYED, ("{label} name {v}",), label="customer", v="Ole")
        assert not suite.WORDS.search(told)
