"""Gemma 1 to 3's parser, on outputs that a reader can follow. ``test_fuzz.py`` has the others."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid, TextDelta
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from tests.dialects.outputs import fed

CALL = '{"name": "f", "parameters": {"a": 1}}'
CALLED = [CallBegin("f"), ArgumentsDelta('{"a": 1}'), CallEnd({"a": 1})]


def read(text: str) -> list[object]:
    return fed(GemmaDialect().parser(), [(text, False)])


def block(*lines: str) -> str:
    return "\n".join(["```tool_call", *lines, "```"])


def arguments(line: str) -> object:
    *_, end = read(block(line))
    return end.arguments if isinstance(end, CallEnd) else end.error


@pytest.mark.parametrize(
    "text",
    [
        "Hello", "\n", "", "a\n", "```python\nx\n```", "a ```tool_call\n{}", "```tool_calls\n", "```tool_call",
        "a\n```tool_cal",
    ],
)  # fmt: skip
def test_words_are_told_as_they_are(text):
    assert read(text) == ([TextDelta(text)] if text else [])


def test_a_call():
    assert read(block(CALL)) == CALLED


def test_words_before_and_behind_a_call():
    assert read(f"Sure.\n\n{block(CALL)}\n\nDone.\n") == [TextDelta("Sure.\n"), *CALLED, TextDelta("Done.\n")]


@pytest.mark.parametrize(
    "text",
    [
        block(CALL, CALL),
        block(f"[{CALL}, {CALL}]"),
        f"{block(CALL)}\n{block(CALL)}",
        f"{block(CALL)} {block(CALL)}",
        block(CALL + CALL),
    ],
)
def test_several_calls(text):
    assert read(text) == CALLED * 2


def test_the_end_of_the_turn_ends_a_block():
    output = [("```tool_call\n" + CALL, False), ("<end_of_turn>", True), ("ignored", False)]
    assert fed(GemmaDialect().parser(), output) == CALLED


def test_other_control_tokens_mean_nothing():
    assert fed(GemmaDialect().parser(), [("a", False), ("<pad>", True), ("b", False)]) == [TextDelta("ab")]


def test_text_that_looks_like_the_end_of_a_turn_is_text():
    assert read("a<end_of_turn>b") == [TextDelta("a<end_of_turn>b")]


def test_arguments_come_while_they_are_written():
    parser = GemmaDialect().parser()
    assert parser.feed('```tool_call\n{"name": "f", "parameters": {"a": "Par') == [
        CallBegin("f"),
        ArgumentsDelta('{"a": "Par'),
    ]
    assert parser.feed("is") == [ArgumentsDelta("is")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"name": "f", "parameters": {"a": [1, {"b": null}, "x"]}}', {"a": [1, {"b": None}, "x"]}),
        ('{"parameters": {"a": 1}, "name": "f"}', {"a": 1}),
        ('{"name": "f", "arguments": {"a": 1}}', {"a": 1}),
        ('{"name": "f", "args": {"a": 1}, "id": 3}', {"a": 1}),
        ('{"name": "f"}', {}),
        ('{"name": "f", "parameters": {"a": 1, "a": 2}}', {"a": 2}),
        ('{"name": "f", "parameters": null}', {}),
        ('{"name": "f", "parameters": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"n\\u0061me": "f", "parameters": {}}', {}),
        ('{"name": "f", "parameters": {"a": "x\ny\tz"}}', {"a": "x\ny\tz"}),
        ('{"name": "f", "parameters": {"a": "```\\n```"}}', {"a": "```\n```"}),
        ('{"name": "f", "parameters": {"name": "g", "parameters": {}}}', {"name": "g", "parameters": {}}),
        ('{"name": "f",\n  "parameters": {\n    "a": 1\n  }\n}', {"a": 1}),
    ],
)
def test_what_can_be_understood(line, expected):
    assert arguments(line) == expected


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("f(a=1)", "should be a JSON object"),
        ("``", "should be a JSON object"),
        ('{"name": "f", "parameters": {"a": 1}', "ends before"),
        ('{"name": "f", "parameters": {"a": 1]}', "delimiter"),
        ('{"name": "f", "parameters": [1]}', "not an object"),
        ('{"name": 1, "parameters": {}}', "no tool's name"),
        ('{"name": "", "parameters": {}}', "no tool's name"),
        ('{"parameters": {}}', "no tool's name"),
        ("{'name': 'f'}", "enclosed in double quotes"),
        ('{"name": "f", "parameters": {"a": NaN}}', "NaN"),
        ('{"name": "f", "parameters": {"a": 1e999}}', "1e999"),
        ('{"name": "f", "parameters": {}, "name": "g"}', "'name' is given twice"),
        ('{"name": "f", "parameters": {}, "parameters": {"a": 1}}', "'parameters' is given twice"),
        ('{"name": "f", "parameters": {"a": "\\ud83d"}}', "surrogate"),
        ('{"name": "f", "parameters": {"a": "\\\n"}}', "backslash"),
        ('{"na\\xme": "f"}', "no JSON"),
        ('{"name": "f", "parameters": ' + '{"a":' * 70, "64 levels"),
        ('{"name": "f", "parameters": {"a": ' + "9" * 5000 + "}}", "digits"),
    ],
)
def test_what_cannot(line, error):
    assert error in arguments(line)


def test_an_invalid_call_is_told_as_it_was_written_and_the_rest_is_read():
    *_, invalid, words = read(block('{"name": "f", "parameters": [1]} and {more}', CALL) + "\nSorry.")
    assert invalid == Invalid('{"name": "f", "parameters": [1]}', "the arguments are not an object", "f")
    assert words == TextDelta("Sorry.")
    assert read(block("f(a=1)", CALL))[0].raw == f"f(a=1)\n{CALL}"


@pytest.mark.parametrize("text", ["```tool_call\nf(", '```tool_call\n{"name": "f", "par', "```tool_call\n``x"])
def test_a_call_that_is_cut_off_is_invalid(text):
    (event,) = read(text)
    assert isinstance(event, Invalid)
    assert event.raw == text.removeprefix("```tool_call\n")


def test_a_block_that_is_empty_is_nothing():
    assert read("a\n```tool_call\n```b") == [TextDelta("ab")]


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("```tool_call\n", 1),
        ("```tool_call\n``", 1),
        ("```tool_call\n```", 0),
        ("```tool_call", 0),  # words, as far as can be seen
        (f"```tool_call\n{CALL}\n", 0),
        (f"```tool_call\n{CALL}\n```\n```tool_call\n", 1),
    ],
)
def test_a_block_that_ends_before_its_call_is_an_unfinished_call(text, unfinished):
    assert [event.unfinished for event in read(text) if isinstance(event, Invalid)] == [True] * unfinished
