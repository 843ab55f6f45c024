"""Reads what a model wrote in Gemma 4's dialect. Strict: what is not well formed counts as no call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from training.data.conversation import Json
from training.data.render import QUOTE

_CALL = re.compile(r"<\|tool_call>call:([^{<]*)(\{.*?)<tool_call\|>", re.DOTALL)
_BARE = re.compile(r"[^,\]}:{\[<]+")
_ENDS = ("<turn|>", "<|tool_response>", "<eos>")


@dataclass(frozen=True)
class Answer:
    """What a model did: calls, or words."""

    calls: tuple[tuple[str, Json], ...]
    text: str


def parse(written: str) -> Answer:
    """The calls in a text, and the words."""
    calls: list[tuple[str, Json]] = []
    for match in _CALL.finditer(written):
        try:
            arguments, end = _value(match[2], 0)
        except (ValueError, IndexError):
            continue
        if end == len(match[2]):
            calls.append((match[1], arguments))
    text = _CALL.sub("", written)
    for end_name in _ENDS:
        text = text.removesuffix(end_name)
    return Answer(tuple(calls), text.strip())


def _value(text: str, at: int) -> tuple[Json, int]:
    if text.startswith(QUOTE, at):
        end = text.index(QUOTE, at + len(QUOTE))
        return text[at + len(QUOTE) : end], end + len(QUOTE)
    if text[at] == "{":
        return _object(text, at + 1)
    if text[at] == "[":
        return _array(text, at + 1)
    match = _BARE.match(text, at)
    if match is None:
        raise ValueError(f"expected a value at {at}")
    return _bare(match[0]), match.end()


def _bare(word: str) -> Json:
    if word in {"true", "false"}:
        return word == "true"
    if word == "null":
        return None
    return float(word) if "." in word else int(word)


def _object(text: str, at: int) -> tuple[Json, int]:
    table: dict[str, Json] = {}
    while text[at] != "}":
        match = _BARE.match(text, at)
        if match is None or text[match.end()] != ":":
            raise ValueError(f"expected a key at {at}")
        table[match[0]], at = _value(text, match.end() + 1)
        at += text[at] == ","
    return table, at + 1


def _array(text: str, at: int) -> tuple[Json, int]:
    items: list[Json] = []
    while text[at] != "]":
        item, at = _value(text, at)
        items.append(item)
        at += text[at] == ","
    return items, at + 1
