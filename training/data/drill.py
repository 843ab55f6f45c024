"""Drills in bare tokens: copying and looking up, with nothing to remember.

Everything that an embedded model does with tools that it has never seen rests on these. In conversations they are
rare and mixed with much that can be learned by heart; here every token is drawn anew, so nothing else helps.
A drill is a list of tokens, and which of them follow from those before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeAlias

ASIDES = 64
"""Of a text, with the part that all of them follow: fewer than that are numbered."""

Part: TypeAlias = tuple[list[int], list[bool]]


@dataclass(frozen=True)
class Text:
    """Tokens, which of them the model is to foresee, and where the text can end."""

    ids: list[int]
    follows: list[bool]
    ends: list[int]
    prompts: bool = True  # whether there is anything to foresee in the other tokens
    asides: list[int] = field(default_factory=list)  # the number of each token's aside; 0, as all are where none are
    # given, is seen by all that follows
    shapes: Mapping[tuple[int, ...], int] = field(default_factory=dict)  # of arguments' values, by names in tokens

    def within(self, room: int) -> Text | None:
        """As much of it as there is room for, if any."""
        if len(self.ids) <= room:
            return self
        end = max((end for end in self.ends if end <= room), default=0)
        return replace(self, ids=self.ids[:end], follows=self.follows[:end], asides=self.asides[:end]) if end else None


def drill(seed: str, tokens: Sequence[int], begin: int) -> Text:
    """The drill of this seed: in these tokens, after the token ``begin``."""
    rng = Random(seed)
    kind = rng.choice((_repeated, _repeated, _looked_up))
    ids, follows, ends = [begin], [False], []
    length = rng.randint(40, 400)
    while len(ids) < length:
        more, more_follow = kind(rng, alphabet(rng, tokens))
        ids, follows = ids + more, follows + more_follow
        ends.append(len(ids))
    return Text(ids, follows, ends, prompts=False)


def alphabet(rng: Random, tokens: Sequence[int]) -> Callable[[], int]:
    """Draws tokens: any, or some few over and over, where one alone does not tell what follows it."""
    few = rng.choice((0, 0, 0, 10, 30, 100))
    chosen = rng.sample(tokens, min(few, len(tokens))) if few else tokens
    return lambda: chosen[int(rng.random() * len(chosen))]


def _repeated(rng: Random, draw: Callable[[], int]) -> Part:
    """``a b c d | a b c d``: what follows, follows again."""
    said = [draw() for _ in range(rng.randint(3, 40))]
    mark = [draw() for _ in range(rng.randint(1, 3))]
    again = rng.randint(1, 2)
    start = min(2, len(said) - 1)  # the first ones may not yet tell which it is that comes again
    ids, follows = list(said), [False] * len(said)
    for _ in range(again):
        part = said if rng.random() < 0.6 else _part(rng, said)
        ids += mark + part
        follows += [False] * (len(mark) + start) + [True] * (len(part) - start)
    return ids, follows


def _part(rng: Random, said: list[int]) -> list[int]:
    """Three tokens or more from anywhere in it."""
    first = rng.randint(0, len(said) - 3)
    return said[first : rng.randint(first + 3, len(said))]


def _looked_up(rng: Random, draw: Callable[[], int]) -> Part:
    """``k:v k:v k:v | k v k v``: values by their keys, in another order."""
    mark, end = draw(), draw()
    pairs = [
        ([draw() for _ in range(rng.randint(1, 3))], [draw() for _ in range(rng.randint(1, 6))])
        for _ in range(rng.randint(2, 8))
    ]
    pairs = [pair for index, pair in enumerate(pairs) if all(pair[0] != other[0] for other in pairs[:index])]
    ids = [token for key, value in pairs for token in (*key, mark, *value, end)]
    follows = [False] * len(ids)
    for key, value in rng.sample(pairs, len(pairs)):
        ids += [*key, mark, *value, end]
        follows += [False] * len(key) + [False] + [True] * (len(value) + 1)
    return ids, follows
