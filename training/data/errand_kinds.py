"""Kinds of values that tools of everyday life take beside the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from training.data import draw
from training.data.conversation import Json
from training.data.kinds import KINDS, Value, value
from training.data.side import listed
from training.data.values import of_kind
from training.data.words import common, names, things
from training.data.words.countries import COUNTRIES
from training.data.world import World


@dataclass(frozen=True)
class ErrandKind:
    """What its JSON is, what it is, and how a value is drawn."""

    schema: dict[str, Json]
    hint: str
    draw: Callable[[World], Value]


_ENDINGS = listed("txt csv pdf md json png log py yaml zip html docx mp3")
_FOLDERS = listed("tmp home data docs src logs etc reports notes backup images var")
_CURRENCIES = listed("USD EUR GBP JPY NOK SEK CHF CAD AUD INR CNY BRL MXN PLN TRY ZAR KRW")
_AREAS = listed("Europe Asia America Africa Australia Pacific")
_DOING = listed(
    """water buy call clean feed wash fix check book write read print paint visit thank pay send order bring fetch
    move renew return cancel clear cook bake charge cut empty fill finish fold hang iron pack plan practise repair
    replace review sort study sweep test update walk wrap"""
)
_WITH = listed("mom, dad, grandma, the kids, my sister, the dentist, the landlord, my boss, the bank, the plumber")
_JOBS = listed(
    """teacher, nurse, baker, pilot, lawyer, plumber, gardener, waiter, dentist, engineer, painter, driver, cook,
    farmer, tailor, secretary, programmer, accountant, librarian, butcher, mechanic, journalist, hairdresser,
    electrician, translator, carpenter, florist, judge, clerk, guard, cleaner, designer, sales manager, truck driver,
    tax adviser, head cook, night guard, data analyst, shop assistant, project manager"""
)
_ASKED = listed(
    """best, cheap, how to fix, history of, what is, reviews of, near me, meaning of, recipe for, price of, who made,
    how to make, where to buy, old, free, used, pictures of, facts about, difference between, songs about, local"""
)


def _task(w: World) -> Value:
    verb = w.one(_DOING) if w.chance(0.7) else w.one(common.VERBS)
    form = w.rng.random()
    if form < 0.15:
        text = f"{w.one(['call', 'visit', 'thank', 'pay', 'write to', 'pick up'])} {w.one(_WITH)}"
    elif form < 0.75:
        text = f"{verb} {w.one(['the ', 'the ', 'my ', 'a ', 'all ', ''])}{_thing(w)}"
    else:
        text = f"{verb} the {w.pick(things.MODIFIERS)} {_thing(w)}"
    return Value(text, text)


def _query(w: World) -> Value:
    words = [_thing(w)] if w.chance(0.6) else [w.pick(things.MODIFIERS), _thing(w)]
    if w.chance(0.5):
        words.insert(0, w.one(_ASKED))
    if w.chance(0.3):
        words += [w.one(["in", "near", "from", "for"]), draw.place(w) if w.chance(0.6) else _thing(w)]
    text = " ".join(words)
    return Value(text, text)


def _thing(w: World) -> str:
    return w.one(common.NOUNS) if w.chance(0.6) else draw.noun(w)


def _file(w: World) -> str:
    name = w.one([w.made_up(), _thing(w), f"{_thing(w)}_{w.rng.randint(1, 99)}"])
    path = f"{name}.{w.one(_ENDINGS)}" if w.chance(0.85) else name
    for _ in range(w.one([0, 0, 0, 1, 1, 2])):
        path = f"{w.one(_FOLDERS) if w.chance(0.6) else w.made_up()}/{path}"
    return w.one(["/", "/", "", "./", "~/"]) + path if "/" in path else path


def _when(w: World) -> Value:
    text = w.one(
        [
            "today",
            "tomorrow",
            "tonight",
            f"next {w.one(draw.DAYS)}",
            w.one(draw.DAYS),
            f"{w.one(draw.DAYS)} at {draw.time(w)}",
            f"tomorrow at {draw.time(w)}",
            f"{w.one(draw.DAYS)} {w.one(['morning', 'evening', 'afternoon'])}",
            "next week",
            "this weekend",
            f"in {w.rng.randint(2, 9)} days",
        ]
    )
    return Value(text, text)


def _venue(w: World) -> Value:
    form = w.rng.random()
    if form < 0.4:
        text = f"{w.pick(names.GIVEN)}'s"
    elif form < 0.7:
        text = f"The {w.pick(things.MODIFIERS).capitalize()} {_thing(w).capitalize()}"
    else:
        text = draw.title(w)
    return Value(text, text)


def _listed(w: World, draw_one: Callable[[World], Json]) -> Value:
    several = list(dict.fromkeys(draw_one(w) for _ in range(w.one([1, 2, 2, 3, 3, 4]))))
    *before, last = map(str, several)
    text = f"{', '.join(before)} {w.one(['and', 'and', '&'])} {last}" if before else last
    return Value(list[Json](several), text)


def _expression(w: World) -> Value:
    first, *rest = (str(w.rng.randint(1, 99)) for _ in range(w.one([2, 2, 3, 4])))
    space = w.one([" ", " ", ""])
    text = first
    for number in rest:
        text = f"({text})" if "+" in text and w.chance(0.3) else text
        text += f"{space}{w.one(list('+-*/'))}{space}{number}"
    return Value(text, text)


def _of(make: Callable[[World], str]) -> Callable[[World], Value]:
    return lambda w: Value(text := make(w), text)


def _letters(w: World, low: int, high: int) -> str:
    return w.mine(lambda: "".join(w.one("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(w.rng.randint(low, high))))


_STRING: dict[str, Json] = {"type": "string"}
_INTEGER: dict[str, Json] = {"type": "integer"}

_OF_TEMPLATES = {
    "command": "command line",
    "sql": "statement of SQL",
    "table": "name of a table",
    "python": "code",
    "formula": "what is to be computed",
    "question": "what is to be found out",
    "path": "path",
    "folder": "path of the folder",
    "symbol": "name in the code",
    "repo": "owner and name",
    "moment": "when, as it was said",
    "room": "room",
    "dish": "dish",
    "food": "ingredient",
    "cuisine": "kind of food",
    "role_name": "who does it",
    "task_text": "what is to be done",
}
"""What values of these kinds are: they are put together of ``values.txt``."""

ERRAND_KINDS = {
    **{kind: ErrandKind(_STRING, hint, _of(partial(of_kind, kind=kind))) for kind, hint in _OF_TEMPLATES.items()},
    "task": ErrandKind(_STRING, "what is to be done", _task),
    "query": ErrandKind(_STRING, "search words", _query),
    "file": ErrandKind(_STRING, "path of the file", _of(lambda w: w.mine(lambda: _file(w)))),
    "when": ErrandKind(_STRING, "day, as it was said", _when),
    "venue": ErrandKind(_STRING, "name of the place", _venue),
    "currency": ErrandKind(
        _STRING, "three-letter code", _of(lambda w: w.one(_CURRENCIES) if w.chance(0.6) else _letters(w, 3, 3))
    ),
    "ticker": ErrandKind(_STRING, "stock symbol", _of(lambda w: _letters(w, 2, 5))),
    "handle": ErrandKind(_STRING, "user name", _of(lambda w: w.made_up() + w.one(["", "", str(w.rng.randint(1, 99))]))),
    "city": ErrandKind(_STRING, "city", _of(lambda w: draw.place(w).partition(",")[0])),  # beside a country
    "country": ErrandKind(_STRING, "name of the country", _of(lambda w: w.pick(COUNTRIES))),
    "timezone": ErrandKind(
        _STRING, "time zone", _of(lambda w: f"{w.one(_AREAS)}/{w.pick(names.CITIES).replace(' ', '_')}")
    ),
    "expression": ErrandKind(_STRING, "what is to be computed", _expression),
    "zip": ErrandKind(_STRING, "postal code", _of(lambda w: str(w.integer(10_000, 99_999)))),
    "percent": ErrandKind(_INTEGER, "from 0 to 100", lambda w: _number(w.rng.randint(1, 100))),
    "year": ErrandKind(_INTEGER, "year", lambda w: _number(w.integer(1900, 2040))),
    "age": ErrandKind(_INTEGER, "years", lambda w: _number(w.rng.randint(1, 99))),
    "stars": ErrandKind(_INTEGER, "from 0 to 10", lambda w: _number(w.rng.randint(0, 10))),
    "letter": ErrandKind(_STRING, "a letter", _of(lambda w: w.one(list("ABCDEF")))),
    "occupation": ErrandKind(_STRING, "what somebody does for a living", _of(lambda w: w.one(_JOBS))),
    "id": ErrandKind(_INTEGER, "number that identifies it", lambda w: _number(w.integer(1, 99_999))),
    "things": ErrandKind(
        {"type": "array", "items": {"type": "string"}}, "list of things", lambda w: _listed(w, _thing)
    ),
    "people": ErrandKind(
        {"type": "array", "items": {"type": "string"}}, "list of people", lambda w: _listed(w, draw.person)
    ),
    "numbers": ErrandKind(
        {"type": "array", "items": {"type": "number"}}, "list of numbers", lambda w: _listed(w, _small)
    ),
}


def _small(w: World) -> Json:
    return w.rng.randint(1, 99) if w.chance(0.8) else w.rng.randint(1, 99) + 0.5


def _number(number: int) -> Value:
    return Value(number, str(number))


def errand_kind(name: str) -> ErrandKind:
    """A kind of value, of these or of all others."""
    if name in ERRAND_KINDS:
        return ERRAND_KINDS[name]
    kind = KINDS[name]
    return ErrandKind({"type": kind.type}, kind.hint, lambda w: value(kind, w))
