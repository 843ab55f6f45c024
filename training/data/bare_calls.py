"""Tool calls in bare tokens.

Which tool, which of its arguments, in which order, with which values: in conversations each of these is decided once
in a hundred tokens, among much that helps to guess. Here it is decided every few tokens, and nothing else helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from training.data.bare_tools import BareTool, Draw, Marks, bare_tool, declared
from training.data.drill import Text

_TURNED = 0.4  # of requests: each value stands before its key


def bare_calls(seed: str, tokens: Sequence[int], begin: int, marks: Marks) -> Text:
    """Some tools named and described in these tokens, and then one request after another."""
    rng = Random(seed)

    def draw() -> int:
        return tokens[int(rng.random() * len(tokens))]

    tools, declaration = declared(rng, draw, marks)
    ids = [begin, *declaration]
    follows, ends, asides = [False] * len(ids), [], [0] * len(ids)
    for number in range(1, rng.randint(4, 13)):
        if rng.random() < 0.12:
            said, answer = _noise(rng, draw, 1) + _words(rng, bare_tool(rng, draw)), marks.decline
        else:
            said, answer = _request(rng, draw, marks, rng.choice(tools))
        asked = marks.ask + said + marks.asked
        ids += asked + answer + marks.close
        follows += [False] * len(asked) + [True] * len(answer) + [False] * len(marks.close)
        asides += [number] * (len(ids) - len(asides))
        ends.append(len(ids))
    return Text(ids, follows, ends, prompts=False, asides=asides)


def _request(rng: Random, draw: Draw, marks: Marks, tool: BareTool) -> tuple[list[int], list[int]]:
    """What is said, and the call: the keys that were mentioned, in the order in which they were declared."""
    mentioned = [key for key in tool.keys if rng.random() < 0.8]
    values = [[draw() for _ in range(rng.randint(1, 5))] for _ in mentioned]
    pairs: list[list[int]] = []
    turned = rng.random() < _TURNED
    between = rng.choice(marks.behind if turned else marks.between)
    for key, value in zip(mentioned, values, strict=True):
        alone = len(mentioned) == len(tool.keys) == 1 and rng.random() < 0.5
        first, second = (value, key) if turned else (key, value)
        pairs.append((value if alone else first + between + second) + marks.comma)
    rng.shuffle(pairs)
    words = _noise(rng, draw, 3) + _words(rng, tool) + _noise(rng, draw, 2) + marks.comma
    told = [token for pair in pairs for token in pair]
    said = told + words if rng.random() < 0.3 else words + told
    answer = marks.call + tool.name + marks.open
    for number, (key, value) in enumerate(zip(mentioned, values, strict=True)):
        answer = answer + (marks.comma if number else []) + key + marks.colon + marks.quote + value + marks.quote
    return said, answer + marks.called


def _words(rng: Random, tool: BareTool) -> list[int]:
    """What a tool is known by: its name, or most of its words."""
    if rng.random() < 0.3:
        return tool.name
    return rng.sample(tool.words, rng.randint(max(1, len(tool.words) - 1), len(tool.words)))


def _noise(rng: Random, draw: Draw, most: int) -> list[int]:
    return [draw() for _ in range(rng.randint(0, most))]
