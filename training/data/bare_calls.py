"""Tool calls in bare tokens: the form is the dialect's, and every name, word and value is drawn anew.

Which tool, which of its arguments, in which order, with which values: in conversations each of these is decided once
in a hundred tokens, among much that helps to guess. Here it is decided every few tokens, and nothing else helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from training.data.drill import Text
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
        )


@dataclass(frozen=True)
class _Tool:
    name: list[int]
    words: list[int]
    keys: list[list[int]]


def bare_calls(seed: str, tokens: Sequence[int], begin: int, marks: Marks) -> Text:
    """Some tools named and described in these tokens, and then one request after another."""
    rng = Random(seed)

    def draw() -> int:
        return tokens[int(rng.random() * len(tokens))]

    tools = _tools(rng, draw)
    typed = marks.typed if rng.random() < 0.5 else []
    ids = [begin]
    for tool in tools:
        ids += marks.declare + tool.name + marks.describe + tool.words + marks.described
        for number, key in enumerate(tool.keys):
            ids += (marks.comma if number else []) + key + marks.colon + typed
        ids += marks.declared
    follows, ends = [False] * len(ids), []
    for _ in range(rng.randint(3, 8)):
        if rng.random() < 0.12:
            said, answer = _noise(rng, draw, 1) + _words(rng, _tool(rng, draw)), marks.decline
        else:
            said, answer = _request(rng, draw, marks, rng.choice(tools))
        asked = marks.ask + said + marks.asked
        ids += asked + answer + marks.close
        follows += [False] * len(asked) + [True] * len(answer) + [False] * len(marks.close)
        ends.append(len(ids))
    return Text(ids, follows, ends, prompts=False)


def _tools(rng: Random, draw: Draw) -> list[_Tool]:
    """Some that have a word in common, as tools about the same thing have."""
    tools = [_tool(rng, draw) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6)))]
    for number, tool in enumerate(tools[1:], 1):
        if rng.random() < 0.3:
            shared = rng.choice(tools[:number]).words
            tools[number] = _Tool(tool.name, [rng.choice(shared), *tool.words], tool.keys)
    return tools


def _tool(rng: Random, draw: Draw) -> _Tool:
    words = [draw() for _ in range(rng.randint(2, 4))]
    # A name is made of the words, or of others.
    name = rng.sample(words, rng.randint(1, 2)) if rng.random() < 0.5 else [draw() for _ in range(rng.randint(1, 3))]
    keys: list[list[int]] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        key = [draw() for _ in range(rng.randint(1, 3))]
        if all(key[0] != other[0] for other in keys):
            keys.append(key)
    return _Tool(name, words, keys)


def _request(rng: Random, draw: Draw, marks: Marks, tool: _Tool) -> tuple[list[int], list[int]]:
    """What is said, and the call: the keys that were mentioned, in the order in which they were declared."""
    mentioned = [key for key in tool.keys if rng.random() < 0.8]
    values = [[draw() for _ in range(rng.randint(1, 5))] for _ in mentioned]
    pairs: list[list[int]] = []
    between = rng.choice(marks.between)
    for key, value in zip(mentioned, values, strict=True):
        alone = len(mentioned) == len(tool.keys) == 1 and rng.random() < 0.5
        pairs.append((value if alone else key + between + value) + marks.comma)
    rng.shuffle(pairs)
    words = _noise(rng, draw, 3) + _words(rng, tool) + _noise(rng, draw, 2) + marks.comma
    told = [token for pair in pairs for token in pair]
    said = told + words if rng.random() < 0.3 else words + told
    answer = marks.call + tool.name + marks.open
    for number, (key, value) in enumerate(zip(mentioned, values, strict=True)):
        answer = answer + (marks.comma if number else []) + key + marks.colon + marks.quote + value + marks.quote
    return said, answer + marks.called


def _words(rng: Random, tool: _Tool) -> list[int]:
    """What a tool is known by: its name, or most of its words."""
    if rng.random() < 0.3:
        return tool.name
    return rng.sample(tool.words, rng.randint(max(1, len(tool.words) - 1), len(tool.words)))


def _noise(rng: Random, draw: Draw, most: int) -> list[int]:
    return [draw() for _ in range(rng.randint(0, most))]
