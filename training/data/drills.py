"""How many drills there are, and of which kind, as training goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from training.data.bare_calls import bare_calls
from training.data.bare_owners import bare_owners, bare_words
from training.data.bare_tools import Marks
from training.data.drill import Text, drill


@dataclass(frozen=True)
class Stage:
    """Which share of texts are drills; and up to which share of those each kind goes. The rest is copying."""

    share: float
    words: float
    owners: float
    calls: float


TOOLS_FIRST = Stage(0.8, words=0.6, owners=0.6, calls=0.95)  # for a model that can copy and look up already
_OWNERS_FROM = 0.582


def stage(ease: float) -> Stage:
    """The stage where conversations are so hard.

    Drills get fewer from where nothing can be copied yet. When looking up is learned, what a word belongs to
    can be, and they are worth more again.
    """
    if ease >= 1:
        return Stage(0.25, words=0.35, owners=0.35, calls=0.6)
    if ease >= _OWNERS_FROM:
        return Stage(0.45, words=0.0, owners=0.35, calls=0.6)
    return Stage(max(0.8 * (1 - ease / 0.1), 0.3 * (1 - ease)), words=0.0, owners=0.0, calls=0.6)


class Drills:
    """Makes drills in the plain tokens of a vocabulary."""

    def __init__(self, plain: Sequence[int], begin: int, encode: Callable[[str], list[int]]) -> None:
        self._plain, self._begin, self._marks = plain, begin, Marks.of(encode)

    def text(self, seed: str, of: Stage) -> Text:
        """The drill of this seed, of one of the stage's kinds."""
        kind = Random(f"{seed}/kind").random()
        if kind >= of.calls:
            return self.short(seed)
        make = bare_words if kind < of.words else bare_owners if kind < of.owners else bare_calls
        return make(seed, self._plain, self._begin, self._marks)

    def short(self, seed: str) -> Text:
        """One that can be cut anywhere, for what is left of a row."""
        return drill(seed, self._plain, self._begin)
