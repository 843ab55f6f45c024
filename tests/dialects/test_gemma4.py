"""Where Gemma 4's format is more than its template: see ``test_goldens.py`` for the rest."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, RenderOptions, Tool, ToolCall
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError

RING = ToolCall("ring", {}, "1")
THINK = RenderOptions(thinking=True)


def test_words_stand_before_the_calls_as_the_model_wrote_them_and_its_turn_goes_on():
    messages = [Message.user("Hi"), Message.assistant(" At once. ", calls=[RING]), Message.tool("dong", id="1")]
    assert Gemma4Dialect().render(messages).text == (
        "<bos><|turn>user\nHi<turn|>\n<|turn>model\nAt once.<|tool_call>call:ring{}<tool_call|>"
        '<|tool_response>response:ring{value:<|"|>dong<|"|>}<tool_response|>'
    )


def test_words_before_calls_without_results():
    messages = [Message.user("Hi"), Message.assistant("At once.", calls=[RING])]
    assert Gemma4Dialect().render(messages).text.endswith("At once.<|tool_call>call:ring{}<tool_call|><|tool_response>")


def test_behind_a_result_the_answer_follows_in_the_same_turn():
    messages = [
        *(Message.user("Hi"), Message.assistant("Wait.", calls=[RING]), Message.tool("dong", id="1")),
        *(Message.assistant("It rang."), Message.user("Thanks.")),
    ]
    assert '<|"|>}<tool_response|>It rang.<turn|>\n<|turn>user\n' in Gemma4Dialect().render(messages).text


@pytest.mark.parametrize(
    ("messages", "inside"),
    [
        ([Message.user("Hi")], False),
        ([Message.user("Hi"), Message.assistant(calls=[RING]), Message.tool("dong")], True),
        ([Message.user("Hi"), Message.assistant(calls=[RING])], False),
    ],
)
def test_a_prompt_says_whether_it_ends_inside_a_thought(messages, inside):
    prompt = Gemma4Dialect().render(messages, [], THINK)
    assert prompt.in_thought == inside == prompt.text.endswith("<|channel>thought\n")
    assert not Gemma4Dialect().render(messages).in_thought


def test_only_the_large_ones_begin_with_an_empty_thought_and_only_without_thinking():
    ends = {
        (large, thinking): Gemma4Dialect(empty_thought=large)
        .render([Message.user("Hi")], [], RenderOptions(thinking=thinking))
        .text.rpartition("<|turn>model\n")[2]
        for large in (False, True)
        for thinking in (False, True)
    }
    nothing = "<|channel>thought\n<channel|>"
    assert ends == {(False, False): "", (False, True): "", (True, False): nothing, (True, True): ""}


def test_an_error_that_is_an_object_with_an_error_in_it_stays_as_it_is():
    payloads = {"e": {"error": "no", "code": 3}, "o": {"code": 3}}
    calls = [ToolCall("ring", {}, key) for key in payloads]
    results = [Message.tool(value, id=key, is_error=True) for key, value in payloads.items()]
    text = Gemma4Dialect().render([Message.user("Hi"), Message.assistant(calls=calls), *results]).text
    assert 'response:ring{code:3,error:<|"|>no<|"|>}' in text
    assert "response:ring{error:{code:3}}" in text


def test_an_empty_conversation_is_refused():
    with pytest.raises(InputError, match="at least one"):
        Gemma4Dialect().render([])


def test_a_long_conversation_takes_time_in_proportion():
    turn = [Message.user("Hi"), Message.assistant(calls=[RING]), Message.tool("dong", id="1"), Message.assistant("ok")]
    prompt = Gemma4Dialect().render(turn * 2000, [Tool("ring")])
    assert len(prompt.marks) == 4001
