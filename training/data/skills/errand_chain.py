"""Two errands, one for the sake of the other: "find out where she lives, and what the weather is like there"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, User
from training.data.further import with_tools
from training.data.kinds import Value
from training.data.requests import typed_by_somebody
from training.data.results import result, sentence
from training.data.scenario import Scenario
from training.data.scenarios import HELD_OUT, TRAIN, UNUSUAL
from training.data.side import Side, Split, listed, templates
from training.data.skills.everyday import beside, drawn, errand_tool
from training.data.stages import WIDER
from training.data.template import slots_of
from training.data.tools import MadeTool
from training.data.world import World

_DATA = Path(__file__).parent.parent
_NAMED = 0.6  # of results have a name for what is handed on
_BARE = 0.5  # of these have none after all from stage WIDER on, and numbers neither
_SAID_ANYHOW = {"message", "phrase", "task"}  # kinds of which any result will do

_NOT_SAID = 0.25  # what is handed on goes without saying, where more is said
_JOINED = 0.4  # of these from stage WIDER on are any two errands
_RESULT = (
    "the result",
    "it",
    "that",
    "[what|whatever] [you find|comes out|it says|you get]",
    "the answer",
    "the outcome",
)
# Words for what the first errand gives, by the kind of what the second takes.
_MEANT = {
    **dict.fromkeys(("message", "phrase", "task", "query", "topic", "title"), _RESULT),
    **dict.fromkeys(("integer", "count", "decimal", "age", "id", "percent"), (*_RESULT, "that number", "this number")),
}
_MEANT_OF_ITSELF = ("that {label}", "the {label}", "the {label} [you find|that you get|from there]", "that", "it")
_THINGS = frozenset(listed("person place company email url code phone date time street word file venue country year"))
_BOTH = (
    "{first}. [Then|After that,|Next,|Now] {second}.",
    "{first}[,| and] then {second}[.|, please.|]",
    "[First|First of all,|To begin with,] {first}. [Then|After that,|And then] {second}.",
    "{first} and {second}[.|, please.|]",
    "{first}. [When you have it|Once you know|With that|When that is done|As soon as you know], {second}.",
    "{first}, and [when you have it|once you know|with that|after that], {second}.",
    "{first} so that you can {second}.",
    "{first}? {second}",
    "{first}. {second}",
    "1. {first}\n2. {second}",
    "[I need two things|Two steps|Do this]: {first}, then {second}.",
    "{second} - but [first|before that] {first}.",
    "[Before|To] {second}, {first}.",
)


@dataclass(frozen=True)
class _Errands:
    """The first's result is an argument of the second, by that name; and how both are asked for."""

    first: Scenario
    second: Scenario
    handed: str
    asks: tuple[str, ...]


def _read(file: str, scenarios: tuple[Scenario, ...]) -> tuple[_Errands, ...]:
    """What is written as ``first > second.argument`` and lines of requests.

    Raises:
        ValueError: there are no two tools of these names that need what the requests say.
    """
    found = []
    for block in (_DATA / file).read_text("utf-8").strip().split("\n\n"):
        head, *asks = block.splitlines()
        first, second, handed = re.split(r" > |\.", head)
        pairs = product(*([each for each in scenarios if name in _names(each)] for name in (first, second)))
        fitting = (_Errands(one, other, handed, tuple(asks)) for one, other in pairs)
        if (made := next(filter(_fits, fitting), None)) is None:
            raise ValueError(f"expected two errands that need what is said, found none for {head!r} and {asks}")
        found.append(made)
    return tuple(found)


def _names(scenario: Scenario) -> list[str]:
    return re.findall(r"\w+", scenario.name)


def _fits(both: _Errands) -> bool:
    """Whether each request says everything that is needed, but for what is handed on, and nothing that is not known."""
    written = [each.partition(":")[0] for one in (both.first, both.second) for each in one.fields]
    known = {each.removeprefix("?") for each in written}
    needed = {each for each in written if each[0] != "?"} - {both.handed}
    said = [slots_of(ask) for ask in both.asks]
    alone = len(known) == len(written) and both.handed in known
    return alone and all(needed <= each <= known - {both.handed} for each in said)


_ERRANDS = Split(_read("chained.txt", TRAIN), _read("chained_held_out.txt", HELD_OUT + UNUSUAL))
ASKS = templates(*([ask for each in side for ask in each.asks] for side in (_ERRANDS.train, _ERRANDS.held_out)))


def two_errands(w: World) -> Conversation:
    """One after the other, among other tools."""
    both = _joined(w) if w.later(WIDER, _JOINED) else w.pick(_ERRANDS)
    first, second = errand_tool(w, both.first), errand_tool(w, both.second)
    taken = second.tool.name.lower()
    others = [
        each for each in beside(w, both.first, first) if each.tool.name.lower() != taken and each.asks != second.asks
    ]
    if first not in others:  # both have drawn one name
        return two_errands(w)
    tools = [second, *others]
    w.rng.shuffle(tools)

    def turns() -> list[User | Model]:
        return _turns(w, both, first, second)

    return with_tools(w, "two errands", turns(), tools, again=turns)


def _joined(w: World) -> _Errands:
    """Any two errands: the second is asked for with words that mean what comes out of the first."""
    while True:
        first, second = drawn(w), drawn(w)
        link = w.one(second.fields).removeprefix("?") if second.fields else ""
        handed, _, kind = link.partition(":")
        first_asks, second_asks = _complete(first), [each for each in _complete(second) if handed in slots_of(each)]
        words = _MEANT.get(kind, _MEANT_OF_ITSELF if kind in _THINGS else ())
        names = [each.removeprefix("?").partition(":")[0] for one in (first, second) for each in one.fields]
        if first is second or not (words and first_asks and second_asks) or len({*names}) < len(names):
            continue
        other = w.one(second_asks)
        if words is _RESULT and w.chance(_NOT_SAID) and len(slots_of(other)) > 1:
            other = re.sub(rf' ?([,:]|that|and write|text:)? ?"?\{{{handed}\}}"?', "", other)
        meant = w.fill(w.one(words), label=handed.replace("_", " "))
        other = re.sub(rf'"?\{{{handed}\}}"?', meant, other).strip()
        ask = w.fill(w.one(_BOTH), first=_inside(w.one(first_asks)), second=_inside(other))
        return _Errands(first, second, handed, (ask[0].upper() + ask[1:],))


def _complete(scenario: Scenario) -> list[str]:
    """Its requests that say all that is needed, and say it as it is."""
    needed = {each.partition(":")[0] for each in scenario.fields if each[0] != "?"}
    return [each for each in scenario.asks if needed <= slots_of(each) and " => " not in each and "[" not in each]


def _inside(ask: str) -> str:
    """A request's words inside a longer one."""
    ask = ask.rstrip(".?! ")
    return ask if ask.startswith(("I ", "I'", "{")) else ask[0].lower() + ask[1:]


def _turns(w: World, both: _Errands, first: MadeTool, second: MadeTool) -> list[User | Model]:
    ask = w.one(both.asks)
    ask = typed_by_somebody(w, ask) if w.side is Side.TRAIN else ask
    fields = [each for one in (first, second) for each in one.fields]
    link = next(each for each in second.fields if each.label == both.handed)
    values = {each.label: each.draw(w) for each in fields if each.label in slots_of(ask)}
    handed = _handed(w, first) if link.kind in _SAID_ANYHOW else link.draw(w)
    got = result(w, second)

    def arguments(made: MadeTool, more: dict[str, Json]) -> dict[str, Json]:
        return more | {each.name: values[each.label].json for each in made.fields if each.label in values}

    calls = (
        Calls((Call(first.tool.name, arguments(first, {}), _reply(w, link.label, handed)),)),
        Calls((Call(second.tool.name, arguments(second, {link.name: handed.json}), got.reply),)),
    )
    text = w.fill(ask, **{label: each.text for label, each in values.items()})
    return [User(text), Model((*calls, Say(got.answer, got.facts)))]


def _handed(w: World, first: MadeTool) -> Value:
    reply = sentence(w, first).reply
    return Value(str(reply), str(reply))


def _reply(w: World, label: str, handed: Value) -> dict[str, Json] | str:
    if isinstance(handed.json, str) and not w.chance(_NAMED):
        return handed.json
    if w.later(WIDER, _BARE):
        return str(handed.json)
    return {w.one((label, label, "result", "value", "output", "answer")): handed.json}
