"""What people really ask for: tools of everyday life, among others."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Conversation, Json, Tool
from training.data.fields import Field as MadeField
from training.data.fields import object_schema
from training.data.further import served, with_tools
from training.data.kinds import KINDS, Value, value
from training.data.scenario import Scenario
from training.data.scenarios import SCENARIOS
from training.data.side import templates
from training.data.tools import MadeTool, Verb, make_tool
from training.data.world import World

_DESCRIPTIONS = templates(
    ["{Label}", "The {label}", "{Label} ({hint})", "The {hint}", "{Label}, e.g. {example}", "a {hint}"],
    held_out=["{Label} of type {hint}", "Give the {label}", "{Label} like {example}"],
)
_VERB = Verb(("do",), asks=True)


def everyday(w: World) -> Conversation:
    """One request, up to eight tools."""
    scenario = w.pick(SCENARIOS)
    made = _tool(w, scenario)
    return with_tools(w, "everyday", served(w, made), _beside(w, scenario, made))


def _beside(w: World, scenario: Scenario, wanted: MadeTool) -> list[MadeTool]:
    """The tool among others of both kinds."""
    others = [each for each in SCENARIOS.of(w.side) if each.fields != scenario.fields]
    count = w.rng.randint(0, round(1 + 6 * w.ease))
    tools = [wanted]
    for _ in range(count):
        other = _tool(w, w.one(others)) if w.chance(0.6) else make_tool(w)
        if other.tool.name.lower() not in {each.tool.name.lower() for each in tools}:
            tools.append(other)
    w.rng.shuffle(tools)
    return tools


def _tool(w: World, scenario: Scenario) -> MadeTool:
    words = tuple(w.fill(scenario.name).strip("_").split("_"))
    fields = [_field(w, each) for each in scenario.fields]
    tool = Tool(draw.label(words, w), w.fill(scenario.description), object_schema(fields))
    return MadeTool(tool, _VERB, words[-1], tuple(fields), scenario.asks)


def _field(w: World, written: str) -> MadeField:
    required, (name, _, kind_name) = not written.startswith("?"), written.removeprefix("?").partition(":")
    words = tuple(name.split("_"))
    schema: dict[str, Json] = {"type": "string"}
    options = kind_name.split("/")
    if len(options) > 1:
        schema["enum"] = list[Json](options)
        return MadeField(draw.label(words, w), name, schema, required, lambda world: Value(*([world.one(options)] * 2)))
    kind = KINDS[kind_name]
    schema["type"] = kind.type
    if w.chance(0.7):
        label = " ".join(words)
        example = value(kind, w).text
        schema["description"] = w.say(
            _DESCRIPTIONS, label=label, Label=label.capitalize(), hint=kind.hint, example=example
        )
    return MadeField(draw.label(words, w), name, schema, required, lambda world: value(kind, world))
