"""Calls in every notation in which Gemma 4 was seen to write them: none is lost and none invented, however it comes."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import pairwise

import jsonschema
import pytest

from langchain_gemma_jax.dialects import CallBegin, CallEnd, Invalid, TextDelta, ThoughtDelta, Tool, grammar_for, merged
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from tests.dialects.outputs import fed, fed_ids, output
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import constraints, draw

TOOLS = ("bash", "ba", "get_weather", "read(file)")
ARGUMENTS = {"command": 'say "hi", {all}', "n": 2, "deep": {"a": [True, None]}}
INSIDE = '{command:<|"|>say "hi", {all}<|"|>,deep:{a:[true,null]},n:2}'
PYTHON = '(command=<|"|>say "hi", {all}<|"|>, n=2, deep={a:[true,null]})'

FORMS = {
    "as it was trained": f"<|tool_call>call:bash{INSIDE}<tool_call|><|tool_response>",
    "behind a thought, without its opener": f"<|channel>thought\nLook.\n<channel|>call:bash{INSIDE}<turn|>",
    "at the beginning, without its opener": f"call:bash{INSIDE}<tool_call|><|tool_response>",
    "in round brackets": f"<|tool_call>call:bash{PYTHON}<tool_call|>",
    "without the word call": f"<|tool_call>bash{INSIDE}<tool_call|><turn|>",
    "in a thought that is not closed": f"<|channel>thought\nLet's go.<|tool_call>call:bash{INSIDE}<tool_call|><turn|>",
}
MORE = {
    "round brackets, without an opener": f" \ncall:bash{PYTHON}<turn|>",
    "as Python has it": '<|tool_call>call:bash(command="say \\"hi\\", {all}", n=2, deep={a:[True,None]})<tool_call|>',
    "in single quotes": "call:bash(command='say \"hi\", {all}', n=2, deep={a:[true,null]})<turn|>",
    "with a space": f"call:bash {INSIDE}<eos>",
    "cut off behind its arguments": f"call:bash{INSIDE}",
}
WORDS = [
    'call:other{command:<|"|>ls<|"|>}',  # not enabled
    f"Say call:bash{INSIDE}",
    'call:bash{command!<|"|>ls<|"|>} and so on',
    'call:bash(<|"|>ls<|"|>)',  # whose argument has no name
    "call me, call:bash. call:bashful{a:1}",
    "call:",
    "\n call:ba",
    "call:get_weather",
    'He said <|"|>call<|"|>',
]


def splits(text: str, rng: random.Random, count: int):
    """An output whole, character by character, and in random pieces."""
    yield output(text)
    yield [(part, is_control) for whole, is_control in output(text) for part in ([whole] if is_control else whole)]
    for _ in range(count):
        pieces = []
        for whole, is_control in output(text):
            cuts = sorted({0, len(whole), *(rng.randrange(len(whole)) for _ in range(3))})
            pieces += [(whole, True)] if is_control else [(whole[a:b], False) for a, b in pairwise(cuts)]
        yield pieces


def every_split(text: str):
    """An output, cut in two at each place."""
    parts = output(text)
    for number, (whole, is_control) in enumerate(parts):
        for at in range(1, 0 if is_control else len(whole)):
            yield [*parts[:number], (whole[:at], False), (whole[at:], False), *parts[number + 1 :]]


def parser():
    return Gemma4Dialect().parser(tools=TOOLS)


@pytest.mark.parametrize("form", [*FORMS, *MORE])
def test_a_call_is_read_in_each_form_and_each_split(form):
    text, rng = (FORMS | MORE)[form], random.Random(form)
    wanted = fed(parser(), output(text))
    calls = [event for event in wanted if not isinstance(event, TextDelta | ThoughtDelta)]
    assert [type(event).__name__ for event in calls] == ["CallBegin", "ArgumentsDelta", "CallEnd"]
    assert calls[0] == CallBegin("bash")
    assert calls[2] == CallEnd(ARGUMENTS)
    assert json.loads(calls[1].json) == ARGUMENTS
    assert [event for event in wanted if isinstance(event, TextDelta)] == []
    for pieces in (*splits(text, rng, 30), *every_split(text)):
        assert fed(parser(), pieces) == wanted


@pytest.mark.parametrize("text", WORDS)
def test_what_is_no_call_comes_out_as_it_was_written(text):
    rng = random.Random(text)
    for around in ("", "<|channel>thought\nHm.<channel|>"):
        said = text if not around else text.lstrip()
        for pieces in (*splits(around + text, rng, 30), *every_split(around + text)):
            events = fed(parser(), pieces)
            assert [event for event in events if not isinstance(event, ThoughtDelta)] == [TextDelta(said)]


def test_without_tools_nothing_is_a_call_without_its_opener():
    for text in (FORMS["at the beginning, without its opener"], f"call:bash{PYTHON}"):
        (words,) = fed(Gemma4Dialect().parser(), output(text))
        assert isinstance(words, TextDelta)
        assert words.text.startswith("call:bash")
        assert '<|"|>say' in words.text


def test_calls_follow_each_other_and_words_follow_calls():
    text = f"call:ba{{}}call:bash{INSIDE}\n<|tool_call>call:ba{{}}<tool_call|>\ncall:read(file){{}} Done."
    events = fed(parser(), output(text))
    assert [event.name for event in events if isinstance(event, CallBegin)] == ["ba", "bash", "ba", "read(file)"]
    assert events[-1] == TextDelta("Done.")


def test_a_call_that_is_cut_off_is_told_so():
    *_, invalid = fed(parser(), output('call:bash{command:<|"|>l'))
    assert (invalid.raw, invalid.name, invalid.unfinished) == ('call:bash{command:<|"|>l', "bash", True)


def test_function_gemma_loses_none_either():
    read = FunctionGemmaDialect().parser(tools=TOOLS)
    pieces = [("call:ba{a:", False), ("<escape>", True), ("x", False), ("<escape>", True), ("}", False)]
    assert fed(read, pieces)[-1] == CallEnd({"a": "x"})


def test_random_outputs_are_read_alike_in_every_split_and_lose_no_word():
    rng = random.Random(4)
    scraps = [*"{}():,=\"' \n", "call:", "bash", "ba", "get_weather", "other", '<|"|>', "True", "1", "<tool_call|>"]
    scraps += ["<|tool_call>", "<channel|>", "<|channel>", "call:bash{", "call:ba(", "é"]
    for _ in range(1500):
        text = "".join(rng.choice(scraps) for _ in range(rng.randrange(1, 12)))
        wanted = fed(parser(), output(text))
        for pieces in splits(text, rng, 3):
            assert fed(parser(), pieces) == wanted, text
        if "<|tool_call>" not in text and not any(isinstance(event, CallBegin) for event in wanted):
            said = "".join(event.text for event in wanted if isinstance(event, TextDelta | ThoughtDelta))
            assert words_of(said) == words_of(text), text


def words_of(text: str) -> str:
    """A text without white space and the marks around thoughts and calls."""
    for mark in ("<tool_call|>", "<channel|>", "<|channel>"):
        text = text.replace(mark, "")
    return "".join(text.split())


def test_long_beginnings_take_time_in_proportion():
    for text in ("(" * 200_000, "call:bash" + "(" * 200_000, " " * 200_000, "call:read" + "(file" * 50_000):
        read = parser()
        for at in range(0, len(text), 100):
            read.feed(text[at : at + 100])
        assert merged(read.finish()) is not None
    marked = parser()
    marked.feed("<|tool_call>", is_control=True)
    for _ in range(2000):
        marked.feed("call:x" + "(" * 100)
    assert isinstance(marked.finish()[-1], Invalid)


# And under a grammar, which holds the model to a valid call as soon as one has begun.

SCHEMAS = {
    "bash": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    "get_weather": {
        "type": "object",
        "properties": {"days": {"type": "integer"}, "unit": {"enum": ["c", "f"]}},
        "required": ["unit"],
        "additionalProperties": False,
    },
}


@cache
def grammar(thoughts="none"):
    tools = [Tool(name, "", schema) for name, schema in SCHEMAS.items()]
    return grammar_for(tools, "auto", True, Gemma4Dialect(), thoughts=thoughts)


def tokens_of(text: str) -> list[int]:
    known, found = tokenizer(), []
    for part, is_control in output(text):
        found += [known.control_id(part)] if is_control else known.encode_text(part)
    return found


@pytest.mark.long
def test_a_thousand_forced_turns_have_no_invalid_call():
    rng, known = random.Random(9), tokenizer()
    stops = frozenset(known.eos_ids)
    begins = [
        ("", "none"), (" \n", "none"), ("<|channel>thought\nHm.<channel|>", "none"), ("Hm.<channel|>", "inside"),
    ]  # fmt: skip
    calls = 0
    for turn in range(1000):
        before, thoughts = begins[turn % len(begins)]
        name = rng.choice(list(SCHEMAS))
        opener = rng.choice(["", "", "<|tool_call>"])
        bracket = rng.choice("{(") if not opener else "{"
        rule = constraints().of(grammar(thoughts), stops, forces=rng.random() < 0.5)
        found: list[int] = []
        for token in tokens_of(f"{before}{opener}call:{name}{bracket}"):
            if rule.take(token):
                found.append(token)
            else:  # a round bracket, which is drawn again
                assert known.token_bytes(token) == b"("
        assert rule.active
        while not rule.finished and not (rule.complete and len(found) > 60):
            forced = rule.forced()
            for token in forced or [draw(rule, rng, 0.2, ends=len(found) > 60)]:
                assert rule.take(token)
                found.append(token)
            if found[-1] in stops:
                break
        parsed = Gemma4Dialect().parser(in_thought=thoughts == "inside", tools=tuple(SCHEMAS))
        events = fed_ids(parsed, known, found)
        assert not any(isinstance(event, Invalid) for event in events), turn
        assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == "", turn
        named = [event.name for event in events if isinstance(event, CallBegin)]
        assert named[0] == name or bracket == "("
        for each, end in zip(named, [e for e in events if isinstance(e, CallEnd)], strict=True):
            jsonschema.validate(dict(end.arguments), SCHEMAS[each])
            calls += 1
    assert calls >= 1000


@pytest.mark.parametrize(
    ("text", "thoughts"),
    [
        ("Say call:bash{a", "none"), ("call:other{a", "none"), ("Hm. call:bash{a", "inside"), ("call:bash", "none"),
        ("<|channel>thought\ncall:bash{a", "none"), ("call:bash<|channel>{a", "none"), ("call:bashful{", "none"),
    ],
)  # fmt: skip
def test_words_are_held_to_nothing(text, thoughts):
    rule = constraints().of(grammar(thoughts), frozenset(tokenizer().eos_ids), forces=True)
    assert all(map(rule.take, tokens_of(text)))
    assert not rule.active
