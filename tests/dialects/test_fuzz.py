"""Whatever a model writes: parsers never raise, take it in any pieces, and keep what they promise."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from itertools import count, islice

import pytest

from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Event, Invalid, TextDelta, ThoughtDelta
from tests.counted import growth
from tests.dialects.outputs import CONTROL, DIALECTS, Output, fed, random_output

MANY, SPLIT = 10_000, 200
MEGABYTE = 1_000_000
TIMES = 8  # as long is the longer of two outputs
MOST = 16.0  # times as many lines and bytes: in proportion it would be 8, and 64 with each pair of characters

NAMES = pytest.mark.parametrize("name", DIALECTS)


def check(events: list[Event]) -> None:
    """Calls begin and end, and the arguments that were streamed are those that are told in the end."""
    name: str | None = None
    streamed = ""
    for event in events:
        match event:
            case CallBegin():
                assert name is None
                name, streamed = event.name, ""
                assert name
            case ArgumentsDelta(text):
                assert name is not None
                streamed += text
            case CallEnd(arguments):
                assert name is not None
                assert repr(json.loads(streamed)) == repr(arguments)
                name = None
            case Invalid():
                assert event.name is None or event.name == name or name is None
                assert event.error
                name = None
            case TextDelta(text) | ThoughtDelta(text):
                assert name is None
                assert text
    assert name is None, "a call has no end"


def short_outputs(name: str) -> Iterator[Output]:
    outputs = (random_output(name, seed) for seed in count())
    return islice((output for output in outputs if 20 <= sum(len(text) for text, _ in output) <= 120), SPLIT)


@pytest.mark.long
@NAMES
def test_nothing_makes_a_parser_raise_or_break_its_word(name):
    kinds = set()
    for seed in range(MANY):
        events = fed(DIALECTS[name].parser(), random_output(name, seed))
        check(events)
        kinds |= set(map(type, events))
    assert kinds >= {TextDelta, CallBegin, ArgumentsDelta, CallEnd, Invalid}


@NAMES
def test_however_an_output_is_split_its_events_are_the_same(name):
    parser = DIALECTS[name].parser
    for output in short_outputs(name):
        whole = fed(parser(), output)
        letters = [(part, control) for text, control in output for part in ([text] if control else text)]
        assert fed(parser(), letters) == whole
        for number, (text, control) in enumerate(output):
            for at in [] if control else range(1, len(text)):
                halves: Output = [(text[:at], False), (text[at:], False)]
                assert fed(parser(), [*output[:number], *halves, *output[number + 1 :]]) == whole


def test_a_thought_that_the_prompt_began_can_be_split_anywhere():
    for output in short_outputs("gemma4"):
        letters = [(part, control) for text, control in output for part in ([text] if control else text)]
        parser = DIALECTS["gemma4"].parser
        assert fed(parser(in_thought=True), letters) == fed(parser(in_thought=True), output)


def hostile(name: str, size: int = MEGABYTE) -> dict[str, Output]:
    """So many characters of what could cost more than its share."""
    call, end, quote = {
        "gemma": (("```tool_call\n", False), ("\n```", False), ('"', False)),
        "function_gemma": (("<start_function_call>", True), ("<end_function_call>", True), ("<escape>", True)),
        "gemma4": (("<|tool_call>", True), ("<tool_call|>", True), ('<|"|>', True)),
    }[name]
    opening = '{"name": "f", "parameters": {' if name == "gemma" else "call:f{"
    short = "a:1," if name != "gemma" else '"a":1,'
    shapes = {
        "brackets": "[" * size,
        "objects": "{a:" * (size // 3),
        "pairs": "[]," * (size // 3),
        "members": short * (size // len(short)),
        "commas": "," * size,
        "digits": "a:" + "1" * size,
        "spaces": " " * size,
        "quotes": '"' * size,
        "backslashes": 'a:"' + "\\" * size,
        "words": "word " * (size // 5),
        "list": "a:[" + "1," * (size // 2),
        "ticks": "`" * size,
        "lines": "\n" * size,
        "blocks": "\n```tool_call\n```" * (size // 17),
        "almost blocks": "\n```tool_cal" * (size // 12),
        "almost ends": "\n``" * (size // 3),
    }
    outputs: dict[str, Output] = {}
    for title, text in shapes.items():
        outputs[title] = [(text, False)]
        outputs[f"{title} in a call"] = [call, (opening + text, False), end]
        outputs[f"{title} for a call"] = [call, (text, False), end]
    outputs["a long string"] = [
        call,
        (f"{opening}a:", False),
        quote,
        ("x\n" * (size // 2), False),
        quote,
        ("}", False),
        end,
    ]
    outputs["calls"] = [call, ("call:f{}", False), end] * (size // 40)
    outputs["control tokens"] = [(token, True) for token in CONTROL[name] if token not in DIALECTS[name].stops] * (
        size // 100
    )
    return outputs


COSTLY = ("members in a call", "quotes in a call", "blocks")


def out_of_proportion(name: str, size: int, titles: Collection[str] | None = None, *, split: bool = False) -> list[str]:
    """The titles of outputs whose cost grows faster than they do. With ``split``, outputs come in single characters."""

    def cost(output: Output) -> Callable[[], None]:
        if split:
            output = [(part, control) for text, control in output for part in ([text] if control else text)]
        return lambda: check(fed(DIALECTS[name].parser(), output))

    short, long = hostile(name, size // TIMES), hostile(name, size)
    assert short.keys() == long.keys() >= set(titles or ())
    return [title for title in titles or long if growth(cost(short[title]), cost(long[title])) >= MOST]


@pytest.mark.long
@NAMES
def test_what_is_eight_times_as_long_costs_no_sixteen_times_as_much(name):
    assert out_of_proportion(name, MEGABYTE // 32, COSTLY) == []


@pytest.mark.slow
@NAMES
def test_much_of_anything_costs_in_proportion(name):
    assert out_of_proportion(name, MEGABYTE // 10) == []


@pytest.mark.slow
@NAMES
def test_single_characters_cost_in_proportion(name):
    assert out_of_proportion(name, MEGABYTE // 50, split=True) == []
