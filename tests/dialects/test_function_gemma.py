"""Where FunctionGemma's format is more than its template: see ``test_goldens.py`` for the rest."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, Tool, ToolCall
from langchain_gemma_jax.dialects.function_gemma import TRIGGER, FunctionGemmaDialect

RING, BELL = ToolCall("ring", {}, "1"), Tool("ring", "Rings")
CALLED = [Message.user("Hi"), Message.assistant(calls=[RING]), Message.tool("dong", id="1")]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ([], TRIGGER),
        ([""], TRIGGER),
        (["Be kind. "], f"Be kind.\n{TRIGGER}"),
        ([TRIGGER], TRIGGER),
        ([f"{TRIGGER}\nBe kind."], f"{TRIGGER}\nBe kind."),
    ],
)
def test_the_words_that_switch_calling_on_are_there_once(told, shown):
    messages = [*map(Message.system, told), Message.user("Ring")]
    text = FunctionGemmaDialect().render(messages, [BELL]).text
    assert text.startswith(f"<bos><start_of_turn>developer\n{shown}<start_function_declaration>declaration:ring{{")


def test_without_tools_they_are_not():
    assert TRIGGER not in FunctionGemmaDialect().render([Message.system("Be kind."), Message.user("Hi")]).text


def test_a_user_who_speaks_behind_a_result_gets_a_turn_of_their_own():
    text = FunctionGemmaDialect().render([*CALLED, Message.user("Well?")], [BELL]).text
    assert text.endswith(
        "<end_function_response><end_of_turn>\n<start_of_turn>user\nWell?<end_of_turn>\n<start_of_turn>model\n"
    )


def test_the_model_goes_on_behind_a_result():
    assert (
        FunctionGemmaDialect()
        .render(CALLED, [BELL])
        .text.endswith("{value:<escape>dong<escape>}<end_function_response>")
    )


def test_calls_without_results_wait_for_them():
    assert (
        FunctionGemmaDialect().render(CALLED[:2], [BELL]).text.endswith("<end_function_call><start_function_response>")
    )


def test_a_later_system_message_is_the_developers():
    text = FunctionGemmaDialect().render([Message.user("Hi"), Message.system("In Dutch.")]).text
    assert "<start_of_turn>developer\nIn Dutch.<end_of_turn>" in text
