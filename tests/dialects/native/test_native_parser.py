"""Gemma 4's and FunctionGemma's parser, on outputs that a reader can follow. ``test_fuzz.py`` has the others."""

from __future__ import annotations

import re

import pytest

from langchain_gemma_jax.dialects import (
    ArgumentsDelta,
    CallBegin,
    CallEnd,
    Invalid,
    StreamParser,
    TextDelta,
    ThoughtDelta,
)
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from tests.dialects.outputs import CONTROL, Output, fed

TOKENS = re.compile("(" + "|".join(re.escape(token) for tokens in CONTROL.values() for token in tokens) + ")")


def output(text: str) -> Output:
    """With control strings as control tokens."""
    return [(part, bool(TOKENS.fullmatch(part))) for part in TOKENS.split(text) if part]


def read(text: str, parser: StreamParser | None = None) -> list[object]:
    return fed(parser or Gemma4Dialect().parser(), output(text))


def arguments(body: str) -> object:
    """Those of one call with this body, or what is wrong with it."""
    *_, end = read(f"<|tool_call>call:f{body}<tool_call|>")
    return end.arguments if isinstance(end, CallEnd) else end.error


def test_words():
    assert read("Hello<turn|>") == [TextDelta("Hello")]


def test_thoughts_and_then_words():
    assert read("<|channel>thought\nHm.\n\nSo.\n<channel|>Hello<turn|>") == [
        ThoughtDelta("Hm.\n\nSo."),
        TextDelta("Hello"),
    ]


def test_thoughts_that_the_prompt_began():
    assert read("Hm.\n<channel|>Hello", Gemma4Dialect().parser(in_thought=True)) == [
        ThoughtDelta("Hm."),
        TextDelta("Hello"),
    ]


def test_an_empty_thought_is_none():
    assert read("<|channel>thought\n<channel|>Hello") == [TextDelta("Hello")]
    assert read("<|channel>thought<channel|>Hello") == [TextDelta("Hello")]


def test_a_channel_of_another_name_is_a_thought_with_its_name():
    assert read("<|channel>plan\nGo.<channel|>") == [ThoughtDelta("plan\nGo.")]


def test_a_call_in_a_thought_ends_it():
    assert read("<|channel>thought\nHm.<|tool_call>call:f{}<tool_call|>")[:2] == [ThoughtDelta("Hm."), CallBegin("f")]


def test_a_call():
    assert read('Sure.<|tool_call>call:f{a:<|"|>x "y"\n<|"|>,n:1}<tool_call|><|tool_response>') == [
        TextDelta("Sure."),
        CallBegin("f"),
        ArgumentsDelta('{"a":"x \\"y\\"\\n","n":1}'),
        CallEnd({"a": 'x "y"\n', "n": 1}),
    ]


def test_calls_behind_each_other():
    assert [event.name for event in read("<|tool_call>call:f{}<tool_call|>\n<|tool_call>call:g{}<tool_call|> \n<turn|>")
            if not isinstance(event, CallEnd | ArgumentsDelta)] == ["f", "g"]  # fmt: skip


def test_words_behind_a_call_are_words():
    assert read("<|tool_call>call:f{}<tool_call|>\n Done.")[-1] == TextDelta("Done.")
    pieces = [
        ("<|tool_call>", True),
        ("call:f{}", False),
        ("<tool_call|>", True),
        ("\n", False),
        ("a", False),
        (" b", False),
    ]
    assert fed(Gemma4Dialect().parser(), pieces)[-1] == TextDelta("a b")


def test_arguments_come_while_they_are_written():
    parser = Gemma4Dialect().parser()
    parser.feed("<|tool_call>", is_control=True)
    assert parser.feed("call:f{a:") == [CallBegin("f"), ArgumentsDelta('{"a":')]
    assert parser.feed('<|"|>', is_control=True) == [ArgumentsDelta('"')]
    assert parser.feed("Par") == [ArgumentsDelta("Par")]
    assert parser.feed("is") == [ArgumentsDelta("is")]


def test_text_that_looks_like_a_control_token_is_text():
    text = 'call:f{a:<|"|>x<|"|>}<tool_call|><turn|>'
    assert fed(Gemma4Dialect().parser(), [(f"<|tool_call>{text}", False)]) == [TextDelta(f"<|tool_call>{text}")]
    quoted = [
        ("<|tool_call>", True),
        ("call:f{a:", False),
        ('<|"|>', True),
        (text, False),
        ('<|"|>', True),
        ("}", False),
    ]
    assert fed(Gemma4Dialect().parser(), [*quoted, ("<tool_call|>", True)])[-1] == CallEnd({"a": text})


def test_what_comes_behind_the_end_is_ignored():
    for end in ("<turn|>", "<eos>", "<|tool_response>"):
        assert read(f"a{end}b<|tool_call>call:f{{}}<tool_call|>") == [TextDelta("a")]


def test_other_control_tokens_mean_nothing_between_words():
    assert read('a<|turn><tool_call|><|"|>b') == [TextDelta("ab")]


def test_function_gemmas_call():
    text = "Sure.<start_function_call>call:f{a:<escape>x<escape>,b:None}<end_function_call><start_function_response>"
    assert read(text, FunctionGemmaDialect().parser()) == [
        *(TextDelta("Sure."), CallBegin("f"), ArgumentsDelta('{"a":"x","b":null}'), CallEnd({"a": "x", "b": None}))
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{}", {}),
        ("{a:1,b:-2.5,c:1e3,d:true,e:false}", {"a": 1, "b": -2.5, "c": 1000.0, "d": True, "e": False}),
        ("{a:null}", {"a": None}),
        ("{a:[1,[],{},[{b:2}]]}", {"a": [1, [], {}, [{"b": 2}]]}),
        ('{<|"|>a:b<|"|>:<|"|><|"|>}', {"a:b": ""}),
        ("{a b:1}", {"a b": 1}),
        (f"{{a:{10**40}}}", {"a": 10**40}),
        # slips whose meaning is clear
        (" { a : 1 , b : [ 1 , 2 ] } ", {"a": 1, "b": [1, 2]}),
        ("{a:Paris}", {"a": "Paris"}),
        ("{a:New York,b:007,c:1.2.3,d:+5,e:http://x.y/z?q}", {"a": "New York", "b": "007", "c": "1.2.3", "d": "+5",
                                                                "e": "http://x.y/z?q"}),
        ('{"a":"x\\n\\"y\\"","b":[\'z\']}', {"a": 'x\n"y"', "b": ["'z'"]}),
        ("{a:1,}", {"a": 1}),
        ("{a:[1,2,],}", {"a": [1, 2]}),
        ("{a:1", {"a": 1}),
        ("{a:{b:[x", {"a": {"b": ["x"]}}),
        ("", {}),
        ("{a:1,a:2}", {"a": 2}),
    ],
)  # fmt: skip
def test_what_can_be_understood(body, expected):
    assert repr(arguments(body)) == repr(expected)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{a}", "a key and a colon"),
        ("{a:}", "a value should be where '}' is"),
        ("{:1}", "a key and a colon"),
        ("{,a:1}", "a key and a colon"),
        ("{a:1}b", "something after the arguments"),
        ("{a:[1}]", "a comma or a bracket"),
        ("{a:[,1]}", "a value should be where ','"),
        ('{a:<|"|>x', "ends before its arguments do"),
        ('{a:<|"|>x<|"|>y}', "a comma or a bracket should be where 'y' is"),
        ('{a:x<|"|>y<|"|>}', "a quote where none can be"),
        ('{<|"|>a<|"|>1}', "a colon should be where '1' is"),
        ('{"a" 1}', "a colon should be where '1' is"),
        ('{a:"\\ud83d"}', "malformed"),
        ('{a:"\\x"}', "malformed"),
        ("{a:1e999}", "too large"),
        (f"{{a:{'9' * 5000}}}", "too large"),
        ("{a:" + "[" * 70, "64 levels"),
        ("{a:<|turn>}", "<|turn> is inside"),
    ],
)
def test_what_cannot(body, error):
    assert error in arguments(body)


@pytest.mark.parametrize("text", ["f{}", "call{}", "call:{}", "tool:f{}", "", "call: "])
def test_a_call_without_a_name(text):
    (event,) = read(f"<|tool_call>{text}<tool_call|>")
    assert isinstance(event, Invalid)
    assert (event.raw, event.name) == (text, None)


def test_an_invalid_call_is_told_as_it_was_written_and_the_rest_is_read():
    *_, invalid, words = read('<|tool_call>call:f{a:<|"|>x<|"|>!!}<tool_call|>Sorry.')
    assert invalid.raw == 'call:f{a:<|"|>x<|"|>!!}'
    assert invalid.name == "f"
    assert words == TextDelta("Sorry.")


@pytest.mark.parametrize("end", ["", "<turn|>", "<eos>", "<|tool_call>call:g{}<tool_call|>"])
def test_a_call_that_is_cut_off_is_invalid(end):
    assert isinstance(read(f'<|tool_call>call:f{{a:<|"|>x{end}')[2], Invalid)
    assert isinstance(read(f"<|tool_call>call:f{{a:1{end}")[2], Invalid)


def test_a_call_that_lacks_only_its_closing_token_is_complete():
    assert read("<|tool_call>call:f{a:1}")[-1] == CallEnd({"a": 1})
    assert read("<|tool_call>call:f{a:1}<eos>")[-1] == CallEnd({"a": 1})
