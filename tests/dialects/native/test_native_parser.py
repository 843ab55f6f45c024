"""Gemma 4's and FunctionGemma's parser, on outputs that a reader can follow. ``test_fuzz.py`` has the others."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid, TextDelta, ThoughtDelta
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from tests.dialects.outputs import fed, read


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
    assert read("a<|turn><tool_call|>b") == [TextDelta("ab")]


def test_quotes_outside_of_calls_are_words():
    assert read('a<|"|>b<|"|>') == [TextDelta('a<|"|>b<|"|>')]
    assert read('<|channel>thought\na<|"|>b<channel|>') == [ThoughtDelta('a<|"|>b')]


def test_function_gemmas_call():
    text = "Sure.<start_function_call>call:f{a:<escape>x<escape>,b:None}<end_function_call><start_function_response>"
    assert read(text, FunctionGemmaDialect().parser()) == [
        *(TextDelta("Sure."), CallBegin("f"), ArgumentsDelta('{"a":"x","b":null}'), CallEnd({"a": "x", "b": None}))
    ]


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
