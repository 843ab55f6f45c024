"""Calibration: constants that turn a model's own probability of an answer into that of the answer being right.

They are measured for each checkpoint, on answers that are known to be right or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from sys import float_info

from langchain_gemma_jax.errors import InputError

ENOUGH = 0.7  # probability of being right from which on an answer of a smaller size is taken


@dataclass(frozen=True)
class Calibration:
    """Factors by which an answer's log-probability is multiplied to get the log-probability that it is right.

    ``calls`` is for tool calls and objects of a schema, ``words`` for answers in words. None: answers in words are
    not judged, since the same thing can be said in many ways.
    """

    calls: float = 1.0
    words: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("calls", self.calls), ("words", self.words)):
            number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= float_info.max
            if not number and not (name == "words" and value is None):
                raise InputError(f"calibration: expected a number above 0 for {name}; found {value!r}.")

    def right(self, logprob: float, *, calls: bool) -> float:
        """Return the probability that an answer of this log-probability is right; 1 if it is not judged.

        >>> round(Calibration(calls=2.0).right(-0.5, calls=True), 2)
        0.37
        """
        factor = self.calls if calls else self.words
        return 1.0 if factor is None else exp(factor * min(0.0, logprob))


# By the most likely exponent on 180 conversations of ``training.routed``'s kinds that it does not use itself: of the
# answers that these call 80 to 95 % sure, 75 to 95 % are right.
KNOWN = {"sprout-s": Calibration(calls=0.9, words=1.2), "sprout-m": Calibration(calls=1.8, words=1.8)}
