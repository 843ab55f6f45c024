"""Tools in bare tokens, in the dialect's form: every name, word and argument is drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from training.data.further import DECLINE

Draw = Callable[[], int]


@dataclass(frozen=True)
class Marks:
    """The tokens of the dialect between which names and values stand."""

    declare: list[int]
    describe: list[int]
    described: list[int]
    typed: list[int]
    declared: list[int]
    ask: list[int]
    asked: list[int]
    call: list[int]
    called: list[int]
    decline: list[int]
    open: list[int]
    close: list[int]
    colon: list[int]
    comma: list[int]
    quote: list[int]
    between: tuple[list[int], ...]  # a key and its value
    behind: tuple[list[int], ...]  # a value and its key

    @classmethod
    def of(cls, encode: Callable[[str], list[int]]) -> Marks:
        """As this tokenizer writes them."""
        return cls(
            declare=encode("<|tool>declaration:"),
            describe=encode('{description:<|"|>'),
            described=encode('<|"|>,parameters:{properties:{'),
            typed=encode('{type:<|"|>STRING<|"|>}'),
            declared=encode("}}}<tool|>"),
            ask=encode("<|turn>user\n"),
            asked=encode("<turn|>\n<|turn>model\n"),
            call=encode("<|tool_call>call:"),
            called=encode("}<tool_call|><|tool_response>"),
            decline=encode(f"{DECLINE.text}<turn|>"),
            open=encode("{"),
            close=encode("<turn|>\n"),
            colon=encode(":"),
            comma=encode(","),
            quote=encode('<|"|>'),
            between=(encode("="), encode(":"), encode(" "), encode(" is ")),
            behind=(encode(" as "), encode(" for "), encode(" is the ")),
        )


@dataclass(frozen=True)
class BareTool:
    """What it is called, the words that describe it, and its arguments."""

    name: list[int]
    words: list[int]
    keys: list[list[int]]


def declared(rng: Random, draw: Draw, marks: Marks) -> tuple[list[BareTool], list[int]]:
    """Some tools, and how they are declared."""
    tools = _tools(rng, draw)
    typed = marks.typed if rng.random() < 0.5 else []
    ids: list[int] = []
    for tool in tools:
        ids += marks.declare + tool.name + marks.describe + tool.words + marks.described
        for number, key in enumerate(tool.keys):
            ids += (marks.comma if number else []) + key + marks.colon + typed
        ids += marks.declared
    return tools, ids


def _tools(rng: Random, draw: Draw) -> list[BareTool]:
    """Some that have a word in common, as tools about the same thing have."""
    tools = [bare_tool(rng, draw) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6)))]
    for number, tool in enumerate(tools[1:], 1):
        if rng.random() < 0.3:
            shared = rng.choice(tools[:number]).words
            tools[number] = BareTool(tool.name, [rng.choice(shared), *tool.words], tool.keys)
    return tools


def bare_tool(rng: Random, draw: Draw) -> BareTool:
    """One of them."""
    words = [draw() for _ in range(rng.randint(2, 4))]
    # A name is made of the words, or of others.
    name = rng.sample(words, rng.randint(1, 2)) if rng.random() < 0.5 else [draw() for _ in range(rng.randint(1, 3))]
    keys: list[list[int]] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        key = [draw() for _ in range(rng.randint(1, 3))]
        if all(key[0] != other[0] for other in keys):
            keys.append(key)
    return BareTool(name, words, keys)
