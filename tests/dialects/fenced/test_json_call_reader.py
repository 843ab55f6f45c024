"""One call as a JSON object, read by itself. In an answer, with words around it: ``test_fence_parser.py``."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid
from langchain_gemma_jax.dialects.fenced.json_call_reader import JsonCallReader, strict_json


def read(text, at_once=1000):
    """Return the events of a text, and how much of it was read."""
    reader, told, end = JsonCallReader(), [], 0
    for at in range(0, len(text), at_once):
        piece = text[at : at + at_once]
        taken, events = reader.text(piece, 0)
        told, end = told + events, at + taken
        if reader.over:
            break
    return told + reader.end(), end


def arguments(told):
    return "".join(event.json for event in told if isinstance(event, ArgumentsDelta))


@pytest.mark.parametrize("key", ["parameters", "arguments", "args"])
def test_a_call_is_told_while_it_comes(key):
    text = f'{{"name": "f", "{key}": ' + '{"a": [1, {"b": "}"}]}} and more'
    for size in (1, 2, 3, 7, 1000):
        told, end = read(text, size)
        assert told[0] == CallBegin("f")
        assert arguments(told) == '{"a": [1, {"b": "}"}]}'
        assert told[-1] == CallEnd({"a": [1, {"b": "}"}]})
        assert text[end:] == " and more", "what is behind it is not the call's"


def test_a_call_whose_name_comes_last_is_told_at_its_end():
    told, _ = read('{"parameters": {"a": 1}, "name": "f"}')
    assert told == [CallBegin("f"), ArgumentsDelta('{"a": 1}'), CallEnd({"a": 1})]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('["f", {}]', "a call is an object"),
        ('{"parameters": {}}', "there is no tool's name"),
        ('{"name": "", "parameters": {}}', "there is no tool's name"),
        ('{"name": 3, "parameters": {}}', "there is no tool's name"),
        ('{"name": "f", "parameters": [1]}', "the arguments are not an object"),
        ('{"name": "f", "parameters": "[1]"}', "the arguments are not an object"),
        ('{"name": "f", "name": "g"}', "'name' is given twice"),
        ('{"name": "f", "parameters": {"a": NaN}}', "not a number"),
        ('{"name": "f", "parameters": {"a": 1e999}}', "not a number"),
        ('{"name": "f", "parameters": {"a": "\\ud800"}}', "surrogates"),
        ('{"name": "f\\', "before its arguments do"),
        ('{"name": "f\\\n"}', "a backslash is before a line end"),
        ('{"name": "f", "parameters": {', "the call ends before its arguments do"),
        ('{"name": "f", "parameters": ' + '{"a":' * 200, "levels deep"),
    ],
)
def test_what_is_no_call_is_told_with_what_was_written(text, problem):
    told, end = read(text)
    invalid = told[-1]
    assert isinstance(invalid, Invalid)
    assert problem in invalid.error
    assert invalid.raw == text[:end]
    assert invalid.unfinished == ("before its arguments do" in problem)


def test_arguments_that_are_json_in_json_and_none_at_all():
    assert read('{"name": "f", "parameters": "{\\"a\\": 1}"}')[0][-1] == CallEnd({"a": 1})
    assert read('{"name": "f"}')[0] == [CallBegin("f"), ArgumentsDelta("{}"), CallEnd({})]


def test_a_line_end_inside_a_string_is_written_as_json_has_it():
    told, _ = read('{"name": "f", "parameters": {"a": "x\ny\t"}}')
    assert told[-1] == CallEnd({"a": "x\ny\t"})
    assert arguments(told) == '{"a": "x\\u000ay\\u0009"}'


def test_json_is_strict_in_numbers_and_characters():
    assert strict_json('{"a": 1.5}') == {"a": 1.5}
    for text in ("NaN", "[Infinity]", "-1e400", '"\\udc00"', "{", ""):
        with pytest.raises(ValueError, match=r"."):
            strict_json(text)
