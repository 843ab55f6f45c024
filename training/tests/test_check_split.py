from dataclasses import replace

import pytest

from training import check_split
from training.check_split import contents
from training.data import side, suite
from training.data.conversation import Call, Calls, Conversation, Model, Tool, User
from training.data.mixture import conversation
from training.data.stages import PLAINER


def test_the_sides_have_nothing_in_common():
    assert not any(check_split.lists_in_common().values())
    assert not any(check_split.conversations_in_common(600).values())
    assert not check_split.said_by_the_suite(600)


def test_a_template_that_another_list_holds_out_is_found(monkeypatch):
    monkeypatch.setitem(side.LISTS, "templates", list(side.LISTS["templates"]))
    side.templates(["Please {verb} it!"], held_out=["something else"])
    side.templates(["nothing like it"], held_out=["please {verb} it"])
    assert check_split.lists_in_common()["templates"] == {"please {verb} it"}


def test_a_sentence_that_is_put_together_and_held_out_is_found(monkeypatch):
    monkeypatch.setitem(side.LISTS, "templates", list(side.LISTS["templates"]))
    side.templates(["nothing like it"], held_out=["[Surely|Certainly] {verb} it, {a} {noun}!"])
    assert not check_split.lists_in_common()["templates put together"]
    side.templates(
        ["any"], held_out=["other"], later={PLAINER: ("[Well, |Surely ][please |]{verb} it[, {a} {noun}|]",)}
    )
    assert check_split.lists_in_common()["templates put together"] == {"surely {verb} it {a} {noun}"}


def test_an_argument_of_a_form_that_is_called_as_what_is_held_out_is_found(monkeypatch):
    (form, *_) = check_split.forms.FORMS.train
    monkeypatch.setattr(check_split, "TAUGHT", (replace(form, fields=("?working_title:title", "size:count")),))
    assert check_split.lists_in_common()["names of arguments"] == {"working title"}


def test_a_common_word_that_a_list_holds_out_is_found(monkeypatch):
    monkeypatch.setattr(check_split.common, "WORDS", ("glacier", "table", "paddlers", "fawn"))
    assert check_split.lists_in_common()["common words"] == {"glacier", "paddlers", "fawn"}


def test_names_and_values_of_conversations_are_compared(monkeypatch):
    monkeypatch.setattr(
        check_split, "conversation", lambda seed, _, **options: conversation(seed, side.Side.TRAIN, **options)
    )
    found = check_split.conversations_in_common(50)
    assert all(found[kind] for kind in ("tool names", "property names", "requests", "values"))


@pytest.mark.parametrize("text", ["the Weather in", "get_weather", "magic_function_no_args", "a haiku", "你好啊"])
def test_the_suites_words_are_known(text):
    assert suite.WORDS.search(text)


def test_what_is_said_in_an_aside_is_compared_too():
    asides = ((User("Add it for Oslo!"), Model((Calls((Call("add", {"city": "Oslo"}, "ok"),)),))),)
    made = Conversation("any", (User("Hello there"),), (Tool("add", "Adds.", {"type": "object"}),), asides=asides)
    found = set(contents(made))
    assert ("requests", "Add it for Oslo!") in found
    assert ("values", "Oslo") in found


def test_the_name_of_a_part_that_is_held_out_may_not_be_a_taught_arguments(monkeypatch):
    assert not check_split.lists_in_common()["names of arguments"]
    taught = next(iter(check_split._arguments_in(check_split.TAUGHT)))
    monkeypatch.setattr(check_split, "PARTS", side.Split(("any:text",), (f"{taught}:text",)))
    assert check_split.lists_in_common()["names of arguments"] == {taught}
