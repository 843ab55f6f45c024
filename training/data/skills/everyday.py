"""What people really ask for: tools of everyday life, among others."""

from __future__ import annotations

import re
from functools import cache

from training.data import draw
from training.data.conversation import Conversation, Json, Model, Tool, User
from training.data.errand_kinds import errand_kind
from training.data.fields import Field as MadeField
from training.data.fields import object_schema
from training.data.further import DECLINE, served, with_tools
from training.data.kinds import Value
from training.data.requests import request
from training.data.scenario import Scenario
from training.data.scenarios import SCENARIOS, UNUSUAL
from training.data.side import Side, listed, templates
from training.data.tools import MadeTool, Verb, make_tool
from training.data.world import World

_DESCRIPTIONS = templates(
    ["{Label}", "The {label}", "{Label} ({hint})", "The {hint}", "{Label}, e.g. {example}", "a {hint}"],
    held_out=["{Label} of type {hint}", "Give the {label}", "{Label} like {example}"],
)

_ANY = frozenset(listed("get find set create add search make new show start open check by of in to a is for on"))
_ALIKE = 2  # words in common: two tools may well do the same, and no one can tell which is meant


def everyday(w: World) -> Conversation:
    """One request, up to eight tools."""
    scenario = w.pick(SCENARIOS)
    made = _tool(w, scenario)
    return with_tools(w, "everyday", served(w, made), _beside(w, scenario, made))


def unusual(w: World) -> Conversation:
    """The same with what is held out for an examination alone."""
    scenario = w.one(UNUSUAL)
    made = _tool(w, scenario)
    beside = [_tool(w, each) for each in w.rng.sample(UNUSUAL, w.rng.randint(0, 7)) if each is not scenario]
    tools = [made, *beside]
    w.rng.shuffle(tools)
    return with_tools(w, "unusual errand", served(w, made), tools)


def not_there(w: World) -> Conversation:
    """What was asked for is something else than what the tools do."""
    scenario = w.pick(SCENARIOS)
    wanted = _tool(w, scenario)
    tools = [each for each in _beside(w, scenario, wanted) if each is not wanted] or [errand(w, but=scenario.fields)]
    return with_tools(w, "no call", (User(request(w, wanted).text), Model((DECLINE,))), tools, ("none fits",))


def errand(w: World, but: tuple[str, ...] = ()) -> MadeTool:
    """A tool of everyday life, with other fields than these."""
    return _tool(w, w.one([each for each in SCENARIOS.of(w.side) if each.fields != but]))


def _beside(w: World, scenario: Scenario, wanted: MadeTool) -> list[MadeTool]:
    """The tool among others of both kinds."""
    others = [each for each in SCENARIOS.of(w.side) if each.fields != scenario.fields]
    if w.side is Side.TRAIN:
        others = [each for each in others if len(_called(each) & _called(scenario)) < _ALIKE]
    count = w.rng.randint(0, round(1 + 6 * w.ease))
    tools = [wanted]
    for _ in range(count):
        other = _tool(w, w.one(others)) if w.chance(0.6) else make_tool(w)
        if other.tool.name.lower() not in {each.tool.name.lower() for each in tools}:
            tools.append(other)
    w.rng.shuffle(tools)
    return tools


@cache
def _called(scenario: Scenario) -> frozenset[str]:
    """Every word that its name can have."""
    return frozenset(re.findall("[a-z]+", scenario.name)) - _ANY


def _tool(w: World, scenario: Scenario) -> MadeTool:
    words = tuple(w.fill(scenario.name).strip("_").split("_"))
    fields = [_field(w, each) for each in scenario.fields]
    tool = Tool(draw.label(words, w), w.fill(scenario.description), object_schema(fields))
    return MadeTool(tool, Verb(words[:1], asks=True), words[-1], tuple(fields), scenario.asks)


def _field(w: World, written: str) -> MadeField:
    required, (name, _, kind_name) = not written.startswith("?"), written.removeprefix("?").partition(":")
    words = tuple(name.split("_"))
    schema: dict[str, Json] = {"type": "string"}
    options = kind_name.split("/")
    if len(options) > 1:
        schema["enum"] = list[Json](options)
        return MadeField(draw.label(words, w), name, schema, required, lambda world: Value(*([world.one(options)] * 2)))
    if kind_name == "bool":
        return MadeField(draw.label(words, w), name, {"type": "boolean"}, required, _not_said)
    kind = errand_kind(kind_name)
    schema = dict(kind.schema)
    if w.chance(0.7):
        label = " ".join(words)
        example = kind.draw(w).text
        schema["description"] = w.say(
            _DESCRIPTIONS, label=label, Label=label.capitalize(), hint=kind.hint, example=example
        )
    return MadeField(draw.label(words, w), name, schema, required, kind.draw, kind=kind_name)


def _not_said(_: World) -> Value:
    raise ValueError("expected a request that means true or false to say so behind ' => ', found its field in braces")
