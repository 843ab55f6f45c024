"""Values as people write them: "Jean-Luc van der Berg", "half past two", "my sister lost the keys on Friday".

Those of ``draw.py`` are of few shapes, and whoever has seen only these ends a copy where one of them would end: a name
at its hyphen, a sentence behind the name that it begins with. Here a value is put together of ``values.txt``, which has
templates by kind. What stands in braces is drawn as often as it is read: ``{name}`` is a name, ``{Thing}`` one with a
capital, ``{WORD}`` in capitals, ``{-city}`` in small letters, and ``{thing2}`` another thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from training.data import draw
from training.data.side import listed
from training.data.stages import HANDS_ON, LIFELIKE
from training.data.template import expand
from training.data.words import common, names, things
from training.data.world import World

_FILE = Path(__file__).with_name("values.txt")
_SHARE = 0.4  # of the values of a kind that has templates, in the stage that has them
_COUNTED = 0.2  # of small numbers are words, and of more in the stage after that
_PARTS = "parts"
_ELSEWHERE = {"thing": "noun", "things": "noun", "n": "number", "count": "number", "city": "place", "family": "name"}
_JOINED = re.compile(r",|&|/|\b(?:and|or)\b")  # what a row of values has between them

_COUNTS = listed("zero one two three four five six seven eight nine ten eleven twelve")
_TEENS = listed("thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")


def as_written(w: World, kind: str, *, apart: bool = False) -> str | None:
    """A value of this kind in training, at times and in the stage that has them; None otherwise.

    ``apart`` is for values in a row: none has in it what stands between them.
    """
    if not (templates := _read().get(kind)) or not w.later(LIFELIKE, _SHARE):
        return None
    while True:
        made = w.mine(lambda: _made(w, w.one(templates)))
        if not apart or not _JOINED.search(made):
            return made


def of_kind(w: World, kind: str) -> str:
    """A value of a kind that has templates, whatever the stage."""
    text = w.mine(lambda: _made(w, w.one(_read()[kind])))
    return re.sub(" +", " ", re.sub(r"\b([Aa]) (?=[AEIOU])", r"\1n ", text))


def counted(w: World, number: str) -> str:
    """A number as it is said, at times: "two" for 2, and later "forty-one" for 41."""
    words = _SMALL if w.stage < HANDS_ON else _ALL
    return words[number] if number in words and w.later(LIFELIKE, _COUNTED) else number


def any_counted(w: World) -> tuple[int, str]:
    """A number of those that are said in a word or two, small ones more often."""
    number = w.one(list(_SMALL if w.chance(0.5) else _ALL))
    return int(number), _ALL[number]


def whole_templates() -> Iterator[str]:
    """Every template with its parts, and every slot by the name that templates elsewhere have for it."""
    for kind, templates in _read().items():
        if kind != _PARTS:
            yield from map(_whole, templates)


def _whole(template: str) -> str:
    def shown(slot: re.Match[str]) -> str:
        name = slot[1].removesuffix("2").removeprefix("-").lower()
        return f"[{_whole(_parts()[name])}]" if name in _parts() else f"{{{_ELSEWHERE.get(name, name)}}}"

    return re.sub(r"\{([^}]+)\}", shown, template)


class _Slots(Mapping[str, str]):
    """What can be filled in, drawn whenever it is looked up."""

    def __init__(self, w: World) -> None:
        self._w = w

    def __getitem__(self, key: str) -> str:
        name = key.removesuffix("2")
        plain = name.lower().removeprefix("-")
        text = _DRAWN[plain](self._w) if plain in _DRAWN else expand(_parts()[plain], self._w.rng, self)
        if name.startswith("-"):
            return text.lower()
        if name.isupper():
            return text.upper()
        return text[:1].upper() + text[1:] if name[0].isupper() else text

    def __iter__(self) -> Iterator[str]:
        return iter((*_DRAWN, *_parts()))

    def __len__(self) -> int:
        return len(_DRAWN) + len(_parts())


def _made(w: World, template: str) -> str:
    text = expand(template, w.rng, _Slots(w)).strip()
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)


def _digits(count: int) -> Callable[[World], str]:
    return lambda w: "".join(str(w.rng.randint(0, 9)) for _ in range(count))


def _number(low: int, high: int, form: str = "d") -> Callable[[World], str]:
    return lambda w: format(w.rng.randint(low, high), form)


def _ascii(w: World) -> str:
    return w.pick(names.GIVEN).lower().encode("ascii", "ignore").decode() or "me"


_SMALL = {str(number): word for number, word in enumerate(_COUNTS)}
_ALL = (
    _SMALL
    | {str(number): word for number, word in enumerate(_TEENS, len(_COUNTS))}
    | {str(10 * ten): word for ten, word in enumerate(_TENS, 2)}
    | {str(10 * ten + one): f"{_TENS[ten - 2]}-{_COUNTS[one]}" for ten in range(2, 10) for one in range(1, 10)}
    | {
        f"{number}{zeros}": f"{word} {of}"
        for zeros, of in (("00", "hundred"), ("000", "thousand"))
        for number, word in enumerate(("a", *_COUNTS[2:10]), 1)
    }
    | {"150": "a hundred and fifty", "1500": "fifteen hundred"}
)
_DRAWN: dict[str, Callable[[World], str]] = {
    "ascii": _ascii,
    "city": lambda w: w.pick(names.CITIES),
    "code": draw.code,
    "count": lambda w: w.one(_COUNTS[1:]),
    "day": lambda w: w.one(draw.DAYS),
    "email": draw.email,
    "family": lambda w: w.pick(names.FAMILY),
    "four": _digits(4),
    "hex": lambda w: f"{w.rng.getrandbits(32):08x}",
    "hour": _number(1, 12),
    "language": lambda w: w.pick(names.LANGUAGES),
    "letter": lambda w: w.one("abcdefghijklmnoprstuvwyz"),
    "letters": lambda w: "".join(w.one("abcdefghijklmnoprstuvwxyz") for _ in range(w.rng.randint(2, 4))),
    "m": _number(1, 12),
    "minute": _number(0, 59, "02"),
    "modifier": lambda w: w.pick(things.MODIFIERS),
    "mon": lambda w: w.one(draw.MONTHS)[:3],
    "month": lambda w: w.one(draw.MONTHS),
    "n": _number(1, 30),
    "name": lambda w: w.pick(names.GIVEN),
    "noun": draw.noun,
    "number": _number(31, 9999),
    "phone": draw.phone,
    "place": draw.place,
    "second": _number(0, 59, "02"),
    "thing": lambda w: w.one(common.NOUNS),
    "things": lambda w: w.one(common.SEVERAL),
    "three": _digits(3),
    "time": draw.time,
    "verb": lambda w: w.one(common.VERBS),
    "word": lambda w: w.made_up(),
    "y": _digits(2),
    "year": _number(1950, 2040),
}


@cache
def _parts() -> dict[str, str]:
    return {name: text for name, _, text in (line.partition(": ") for line in _read()[_PARTS])}


@cache
def _read() -> dict[str, tuple[str, ...]]:
    """The templates by kind."""
    _, *blocks = re.split("^= ", _FILE.read_text("utf-8"), flags=re.MULTILINE)
    return {head: tuple(lines) for head, *lines in (block.strip().splitlines() for block in blocks)}
