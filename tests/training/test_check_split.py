import pytest

from training import check_split
from training.check_split import contents
from training.data import side, suite
from training.data.conversation import Call, Calls, Conversation, Model, Tool, User
from training.data.mixture import conversation


def test_the_sides_have_nothing_in_common():
    assert not any(check_split.lists_in_common().values())
    assert not any(check_split.conversations_in_common(600).values())
    assert not check_split.said_by_the_suite(600)


def test_a_template_that_another_list_holds_out_is_found(monkeypatch):
    monkeypatch.setitem(side.LISTS, "templates", list(side.LISTS["templates"]))
    side.templates(["Please {verb} it!"], held_out=["something else"])
    side.templates(["nothing like it"], held_out=["please {verb} it"])
    assert check_split.lists_in_common()["templates"] == {"please {verb} it"}


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
