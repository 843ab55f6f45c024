"""How many drills there are, and of which kind, as training goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from training.data.bare_calls import bare_calls
from training.data.bare_tools import Marks
from training.data.drill import Text, drill

_CALLS = 0.6  # of drills: the others are copying and looking up
_FIRST, _FEWER_FROM, _LAST = 0.8, 0.15, 0.1


def share(ease: float) -> float:
    """Which share of texts are drills where conversations are so hard: at first most, for nothing can be copied yet."""
    return max(_LAST, _FIRST - (_FIRST - _LAST) * ease / _FEWER_FROM)


class Drills:
    """Makes drills in the plain tokens of a vocabulary."""

    def __init__(self, plain: Sequence[int], begin: int, encode: Callable[[str], list[int]]) -> None:
        self._plain, self._begin, self._marks = plain, begin, Marks.of(encode)

    def text(self, seed: str) -> Text:
        """The drill of this seed."""
        if Random(f"{seed}/kind").random() < _CALLS:
            return bare_calls(seed, self._plain, self._begin, self._marks)
        return self.short(seed)

    def short(self, seed: str) -> Text:
        """One that can be cut anywhere, for what is left of a row."""
        return drill(seed, self._plain, self._begin)
