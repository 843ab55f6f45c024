"""Which name a word belongs to, and which argument comes after which: what a call is made of, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from training.data.bare_tools import Marks, declared
from training.data.drill import Part, Text


def bare_owners(seed: str, tokens: Sequence[int], begin: int, marks: Marks) -> Text:
    """Some tools in these tokens; then words, each with its tool's name, and tools with their arguments."""
    rng = Random(seed)

    def draw() -> int:
        return tokens[int(rng.random() * len(tokens))]

    tools, declaration = declared(rng, draw, marks)
    ids = [begin, *declaration]
    follows, ends = [False] * len(ids), [len(ids)]
    words = [word for tool in tools for word in tool.words]
    for _ in range(rng.randint(4, 12)):
        tool = rng.choice(tools)
        own = [word for word in tool.words if words.count(word) == 1 and word not in tool.name]
        if tool.keys and (not own or rng.random() < 0.5):
            more, more_follow = _arguments(tool.name, tool.keys, [draw() for _ in tool.keys], marks)
        elif own:
            name = tool.name + marks.comma
            more, more_follow = [rng.choice(own), *name], [False] + [True] * len(name)
        else:
            continue
        ids, follows = ids + more, follows + more_follow
        ends.append(len(ids))
    return Text(ids, follows, ends, prompts=False)


def bare_words(seed: str, tokens: Sequence[int], begin: int, marks: Marks) -> Text:
    """Some tools in these tokens; then each word that one of them alone has, with its tool's name."""
    rng = Random(seed)
    tools, declaration = declared(rng, lambda: tokens[int(rng.random() * len(tokens))], marks)
    words = [word for tool in tools for word in tool.words]
    pairs = [
        (word, tool.name + marks.comma)
        for tool in tools
        for word in tool.words
        if words.count(word) == 1 and word not in tool.name
    ]
    rng.shuffle(pairs)
    ids = [begin, *declaration]
    follows, ends = [False] * len(ids), [len(ids)]
    for word, name in pairs:
        ids, follows = [*ids, word, *name], follows + [False] + [True] * len(name)
        ends.append(len(ids))
    return Text(ids, follows, ends, prompts=False)


def _arguments(name: list[int], keys: list[list[int]], values: list[int], marks: Marks) -> Part:
    """A call with all arguments in order. What their values are cannot be known."""
    ids = marks.call + name + marks.open
    follows = [False] * len(ids)
    for number, (key, value) in enumerate(zip(keys, values, strict=True)):
        before = marks.comma if number else []
        value_ids = marks.colon + marks.quote + [value] + marks.quote
        ids = ids + before + key + value_ids
        follows = follows + [True] * (len(before) + len(key)) + [False] * len(value_ids)
    return ids + marks.called, follows + [True] * len(marks.called)
