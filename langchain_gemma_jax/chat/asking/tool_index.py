"""``ToolIndex``: tools by the words that describe them, so that a model finds the ones that it needs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from langchain_gemma_jax.dialects import Json, Tool

MOST_FOUND = 5

_NAME = 3  # the weight of a word of the name, where one of the description has 1
_ALIKE = 0.6  # from here on, a word stands for another: "converting" for "convert"
_PART = 4  # so many letters of a word may stand for it: "mail" for "emails"
_SATURATION, _LENGTH = 1.2, 0.75  # the usual constants of BM25
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ToolIndex:
    """Ranks tools by BM25 over their names, descriptions and parameters. A query's unknown words find similar ones."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names = [tool.name for tool in tools]
        self._counts = [_words_of(tool) for tool in tools]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(tools)) or 1.0
        self._tools_with = Counter(word for counts in self._counts for word in counts)
        self._trigrams = {word: _trigrams(word) for word in self._tools_with}

    def find(self, query: str, most: int = MOST_FOUND) -> tuple[str, ...]:
        """Return the names of the tools that fit a query, the best first. A tool's whole name finds it alone."""
        asked = query.strip().casefold()
        if called := tuple(name for name in self._names if name.casefold() == asked):
            return called[:most]
        scores = [0.0] * len(self._names)
        for word in dict.fromkeys(_split(query)):
            for known, weight in self._meant(word):
                self._add(scores, known, weight)
        ranked = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))
        return tuple(self._names[number] for number in ranked[:most])

    def _add(self, scores: list[float], word: str, weight: float) -> None:
        having = self._tools_with[word]
        rarity = math.log(1 + (len(self._names) - having + 0.5) / (having + 0.5))
        for number, counts in enumerate(self._counts):
            if count := counts.get(word):
                length = 1 - _LENGTH + _LENGTH * self._lengths[number] / self._mean
                scores[number] += weight * rarity * count * (_SATURATION + 1) / (count + _SATURATION * length)

    def _meant(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield the known words that a query's word stands for, with how alike they are."""
        if word in self._tools_with:
            yield word, 1.0
            return
        asked = _trigrams(word)
        for known, own in self._trigrams.items():
            alike = 2 * len(asked & own) / (len(asked) + len(own))
            if alike >= _ALIKE or (min(len(word), len(known)) >= _PART and (word in known or known in word)):
                yield known, max(alike, _ALIKE)


def _words_of(tool: Tool) -> Counter[str]:
    found = Counter({word: _NAME * count for word, count in Counter(_split(tool.name)).items()})
    found.update(_split(tool.description))
    properties = tool.parameters.get("properties")
    for name, schema in (properties if isinstance(properties, Mapping) else {}).items():
        found.update(_split(name))
        found.update(_split(_description(schema)))
    return found


def _description(schema: Json) -> str:
    description = schema.get("description") if isinstance(schema, Mapping) else None
    return description if isinstance(description, str) else ""


def _split(text: str) -> Iterable[str]:
    return _PARTS.findall(_CAMEL.sub(" ", text).casefold())


def _trigrams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))
