"""What anybody may ask of a model that knows little: questions and orders about anything."""

from __future__ import annotations

from pathlib import Path

from training.data import draw
from training.data.side import listed
from training.data.words import common
from training.data.words.countries import COUNTRIES
from training.data.world import World

_ASKED = tuple((Path(__file__).parent / "anything.txt").read_text("utf-8").splitlines())
_NOT_ORDERED = listed("say repeat call name tell remember note")  # which can be done


def ask(w: World) -> str:
    """A question or an order that no tool is for, and that a small model cannot do."""
    verb = w.one(common.VERBS)
    asked = w.fill(
        w.one(_ASKED),
        n=_thing(w),
        ns=w.one(common.SEVERAL),
        adj=w.one(common.ADJECTIVES),
        v="find" if verb in _NOT_ORDERED else verb,
        N=w.one((draw.person(w), draw.place(w), w.made_up().capitalize(), w.one(common.CAPITALS))),
        C=w.pick(COUNTRIES),
        topic=draw.topic(w),
        k=str(w.rng.randint(1, 99)),
        m=str(w.rng.randint(2, 99)),
    )
    asked = " ".join(asked.split()).replace(" ?", "?")
    return asked[0].lower() + asked[1:] if w.chance(0.15) else asked


def _thing(w: World) -> str:
    return w.one(common.NOUNS) if w.chance(0.7) else draw.noun(w)
