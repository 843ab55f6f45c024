"""One conversation's world: its random numbers, its side, and what can be drawn from both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from training.data import suite
from training.data.side import Side, Split, listed, side_of, written
from training.data.stages import FULLER, LIKE_PEOPLE
from training.data.template import expand
from training.data.words import common

T = TypeVar("T")

_ONSETS = listed("b c d f g h j k l m n p r s t v w z br ch cl dr fl gr kr pl qu sh sk sl sn st th tr tw vr wr x y")
_VOWELS = (*listed("a e i o u ai ea ee ia io oo ou y"), *listed("a e i o u"))
_CODAS = listed("n r s t l m k x nd rt st ck ng p b d")
_ENDINGS = listed(
    """er or ar al el le ing ion tion sion ment ance ence age ship ity ness able ible ist ism ure ant ent ade ine
    eum ette ery ory ary ful less ous ive ish ward wise dom hood ling ster man land ton ham field house work board light
    ite ium way side line stone berry bird fish wood water ball book box day mark time tail top"""
)

_IN_MANY_WAYS, _IN_MORE_WAYS = 0.6, 0.7  # of what is said in these two, where it can be
_IN_WORDS = frozenset({"1500", *(f"{number}000" for number in range(1, 10))})
"""Numbers that training says in words, "four thousand", on whatever side they would be: none of them is held out."""

_COMMON = 0.35  # of what is made up in training are real words after all: tokens as words have them
_LIKE_REAL = 0.3  # of the others are put together as real words are


class World:
    """Where one conversation's choices are made.

    ``ease`` from 0 to 1 is how hard the conversation may be: early in training, fewer tools and shorter texts.
    ``strange`` is the share of tools that do what no real word is for. ``stage`` is that of the training
    (``stages.py``).
    """

    def __init__(self, seed: str, side: Side, ease: float = 1.0, strange: float = 0.0, stage: int = 1) -> None:
        self.rng = Random(seed)
        self.side = side
        self.ease = ease
        self.strange = strange
        self.stage = stage

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def like_people(self, probability: float) -> bool:
        """The same in the stage of training that is about what people have; before it there is no such choice."""
        return self.stage >= LIKE_PEOPLE and self.chance(probability)

    def later(self, stage: int, probability: float) -> bool:
        """The same from this stage of training on, and in training alone."""
        return self.stage >= stage and self.side is Side.TRAIN and self.chance(probability)

    def one(self, options: Sequence[T]) -> T:
        """One of these, each as likely."""
        return options[int(self.rng.random() * len(options))]

    def pick(self, options: Split[T]) -> T:
        """One of this side's part."""
        share = _IN_MANY_WAYS if self.stage < FULLER else _IN_MORE_WAYS
        if (wide := options.from_stage(self.stage)) and self.side is Side.TRAIN and self.chance(share):
            return self.one(wide)
        if options.more and self.side is Side.TRAIN and self.chance(0.5):
            return self.one(options.more)
        return self.one(options.of(self.side))

    def any_of(self, options: Split[T]) -> tuple[T, ...]:
        """Everything that is this side's in this stage of training."""
        return options.of(self.side) + (options.from_stage(self.stage) if self.side is Side.TRAIN else ())

    def some(self, options: Split[T], count: int) -> list[T]:
        """So many different ones of this side's part, or all if there are fewer."""
        part = options.of(self.side)
        return self.rng.sample(part, min(count, len(part)))

    def say(self, template: Split[str], **slots: str) -> str:
        """A sentence of one of this side's templates."""
        return expand(self.pick(template), self.rng, slots)

    def fill(self, template: str, **slots: str) -> str:
        """A sentence of this template."""
        return expand(template, self.rng, slots)

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included. Large ones are of one side, as words are."""
        return int(self.mine(lambda: str(self.rng.randint(low, high)))) if high > 100 else self.rng.randint(low, high)

    def mine(self, make: Callable[[], str]) -> str:
        """The first of what ``make`` makes up that belongs to this side."""
        while not self.may_say(made := make()):
            pass
        return made

    def may_say(self, made: str) -> bool:
        """Whether what was made up is this side's, and nothing that must not be said."""
        if self.side is Side.HELD_OUT and made in _IN_WORDS:
            return False
        return side_of(made) is self.side and not suite.WORDS.search(made) and made.casefold() not in written()

    def made_up(self, most: int = 3) -> str:
        """A word that says nothing about what it names: none that there is or, in training, a common one at random."""
        if self.side is Side.TRAIN and self.chance(_COMMON):
            return self.one(common.WORDS)
        return self.mine(lambda: self._syllables(self.rng.randint(1 if most == 1 else 2, most)))

    def _syllables(self, count: int) -> str:
        if self.side is Side.TRAIN and self.chance(_LIKE_REAL):
            return self._like_real(count)
        word = "".join(self.one(_ONSETS) + self.one(_VOWELS) for _ in range(count))
        return word + self.one(_CODAS) if self.chance(0.5) else word

    def _like_real(self, count: int) -> str:
        """With clusters, double letters and endings, which make other tokens than plain syllables do."""
        word = ""
        for _ in range(max(1, count - 1)):
            coda = self.one(_CODAS) if self.chance(0.5) else ""
            word += (self.one(_ONSETS) if self.chance(0.9) else "") + self.one(_VOWELS) + coda
            if len(coda) == 1 and self.chance(0.2):
                word += coda
        return word + (self.one(_ENDINGS) if self.chance(0.8) else self.one(_VOWELS))
