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
from training.data.side import Side, Split, templates
from training.data.skills.everyday import beside, errand_tool
from training.data.template import slots_of
from training.data.tools import MadeTool
from training.data.world import World

_DATA = Path(__file__).parent.parent
_NAMED = 0.6  # of results have a name for what is handed on
_SAID_ANYHOW = {"message", "phrase", "task"}  # kinds of which any result will do


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
    both = w.pick(_ERRANDS)
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
    return {w.one((label, label, "result", "value", "output", "answer")): handed.json}
