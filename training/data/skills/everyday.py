"""What people really ask for: tools of everyday life, among others."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from training.data import draw
from training.data.conversation import Conversation, Json, Model, Tool, User
from training.data.errand_kinds import errand_kind
from training.data.fields import Field as MadeField
from training.data.fields import nullable, object_schema
from training.data.further import DECLINE, served, with_tools
from training.data.kinds import Value
from training.data.requests import request
from training.data.scenario import Scenario
from training.data.scenarios import AGENTS, MORE, SCENARIOS, UNUSUAL
from training.data.side import Side, listed, templates
from training.data.stages import HANDS_ON, WIDER
from training.data.tools import MadeTool, Verb, make_tool
from training.data.values import any_counted
from training.data.world import World

_DESCRIPTIONS = templates(
    ["{Label}", "The {label}", "{Label} ({hint})", "The {hint}", "{Label}, e.g. {example}", "a {hint}"],
    held_out=["{Label} of type {hint}", "Give the {label}", "{Label} like {example}"],
)

_ANY = frozenset(listed("get find set create add search make new show start open check by of in to a is for on"))
_COUNTED, _WRITTEN_OUT = {"count", "age", "stars"}, 0.12
_MORE_WRITTEN_OUT = 0.1  # from stage HANDS_ON on, of larger numbers too
_NUMBERS = listed("one two three four five six seven eight nine ten eleven twelve")
_ALONE = 0.4  # of those that are not what was asked for are the only tool
_MORE = 0.3  # of requests from stage WIDER on are of what only that has
_OF_AGENTS = 0.35  # of requests from stage HANDS_ON on are of what only that has
_AKIN = 0.5  # of requests come with tools that are about the same
_NEAR = 6  # places in the lists
_ALIKE = 2  # words in common: two tools may well do the same, and no one can tell which is meant


def everyday(w: World) -> Conversation:
    """One request, up to eight tools."""
    scenario = drawn(w)
    made = errand_tool(w, scenario)
    return with_tools(w, "everyday", served(w, made), beside(w, scenario, made))


def unusual(w: World) -> Conversation:
    """The same with what is held out for an examination alone."""
    scenario = w.one(UNUSUAL)
    made = errand_tool(w, scenario)
    others = [errand_tool(w, each) for each in w.rng.sample(UNUSUAL, w.rng.randint(0, 7)) if each is not scenario]
    tools = [made, *others]
    w.rng.shuffle(tools)
    return with_tools(w, "unusual errand", served(w, made), tools)


def not_there(w: World) -> Conversation:
    """What was asked for is something else than what the tools do."""
    scenario = drawn(w)
    wanted = errand_tool(w, scenario)
    tools = [each for each in beside(w, scenario, wanted) if each is not wanted] or [_another(w, scenario)]
    tools = tools[:1] if w.like_people(_ALONE) else tools
    return with_tools(w, "no call", (User(request(w, wanted).text), Model((DECLINE,))), tools, ("none fits",))


def drawn(w: World) -> Scenario:
    """What is asked for."""
    if w.later(HANDS_ON, _OF_AGENTS):
        return w.one(AGENTS)
    return w.one(MORE) if w.later(WIDER, _MORE) else w.pick(SCENARIOS)


def errand(w: World) -> MadeTool:
    """A tool of everyday life that takes something."""
    known = MORE if w.later(WIDER, _MORE) else SCENARIOS.of(w.side)
    return errand_tool(w, w.one([each for each in known if each.fields]))


def _another(w: World, scenario: Scenario) -> MadeTool:
    """A tool that is not for that."""
    if scenario in MORE + AGENTS:
        return errand_tool(w, w.one(_beside_more(w, scenario)))
    return errand_tool(w, w.one([each for each in SCENARIOS.of(w.side) if each.fields != scenario.fields]))


def beside(w: World, scenario: Scenario, wanted: MadeTool) -> list[MadeTool]:
    """The tool among others of both kinds."""
    others = _beside_more(w, scenario) if scenario in MORE + AGENTS else _others(w, scenario)
    count = w.rng.randint(0, round(1 + 6 * w.ease))
    if w.like_people(_AKIN):
        others = _akin(scenario, others) or others
    tools = [wanted]
    for _ in range(count):
        other = errand_tool(w, w.one(others)) if w.chance(0.6) else make_tool(w)
        if other.tool.name.lower() not in {each.tool.name.lower() for each in tools}:
            tools.append(other)
    w.rng.shuffle(tools)
    return tools


def _others(w: World, scenario: Scenario) -> list[Scenario]:
    """What takes something else and, in training, is not called alike."""
    others = [each for each in SCENARIOS.of(w.side) if each.fields != scenario.fields]
    if w.side is Side.HELD_OUT:
        return others
    return [each for each in others if len(_called(each) & _called(scenario)) < _ALIKE]


def _beside_more(w: World, scenario: Scenario) -> list[Scenario]:
    """All others of its list, no two of which serve for one thing; or what shares no word of a name with it."""
    if w.chance(0.5):
        return [each for each in (AGENTS if scenario in AGENTS else MORE) if each is not scenario]
    return [each for each in SCENARIOS.of(w.side) if not _called(each) & _called(scenario)]


def _akin(scenario: Scenario, others: list[Scenario]) -> list[Scenario]:
    """Of these, those that are about the same: they are written down side by side."""
    if scenario not in SCENARIOS.train:
        return []
    at = SCENARIOS.train.index(scenario)
    near = SCENARIOS.train[max(0, at - _NEAR) : at + _NEAR + 1]
    return [each for each in others if each in near]


@cache
def _called(scenario: Scenario) -> frozenset[str]:
    """Every word that its name can have."""
    return frozenset(re.findall("[a-z]+", scenario.name)) - _ANY


def errand_tool(w: World, scenario: Scenario) -> MadeTool:
    """The tool that is written down so, in one of the ways that it is called."""
    words = tuple(w.fill(scenario.name).strip("_").split("_"))
    fields = [errand_field(w, each) for each in scenario.fields]
    tool = Tool(draw.label(words, w), w.fill(scenario.description), object_schema(fields))
    return MadeTool(tool, Verb(words[:1], asks=True), words[-1], tuple(fields), scenario.asks)


def errand_field(w: World, written: str) -> MadeField:
    """A field as it is written down, ``?name:kind``."""
    return nullable(w, _field(w, written))


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
    drawn = _in_words(kind.draw) if kind_name in _COUNTED else kind.draw
    schema = dict(kind.schema)
    if w.chance(0.7):
        label = " ".join(words)
        example = kind.draw(w).text
        schema["description"] = w.say(
            _DESCRIPTIONS, label=label, Label=label.capitalize(), hint=kind.hint, example=example
        )
    return MadeField(draw.label(words, w), name, schema, required, drawn, kind=kind_name)


def _in_words(draw_one: Callable[[World], Value]) -> Callable[[World], Value]:
    """Small numbers as people write them at times."""

    def drawn(w: World) -> Value:
        if w.later(HANDS_ON, _MORE_WRITTEN_OUT):
            return Value(*any_counted(w))
        if not w.like_people(_WRITTEN_OUT):
            return draw_one(w)
        number = w.rng.randrange(len(_NUMBERS))
        return Value(number + 1, _NUMBERS[number])

    return drawn


def _not_said(_: World) -> Value:
    raise ValueError("expected a request that means true or false to say so behind ' => ', found its field in braces")
