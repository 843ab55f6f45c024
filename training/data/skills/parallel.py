"""Two calls at once: what was asked for twice, or two things that have nothing to do with each other."""

from __future__ import annotations

import re

from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.further import with_tools
from training.data.kinds import Value
from training.data.requests import request, unfinished
from training.data.results import result
from training.data.side import Side, templates
from training.data.skills.everyday import errand
from training.data.stages import FULLER, PLAINER
from training.data.template import slots_of
from training.data.tools import MadeTool, crowd, make_tool
from training.data.ways import ways
from training.data.wild import put
from training.data.world import World

_TWICE = templates(
    [
        "{first}. [The same|Also|And] for {v}.",
        "{first}. And for {v}[ too|, please|]?",
        "{first}, and also for {v}.",
        "{first}. {v} too[|, please].",
        "{first}. {v} as well.",
        "{first}, then the same with {v}.",
        "{first}; {v} needs it too.",
        "{first}. Repeat [it|that|this] with {v}.",
        "{first}. After that comes {v}.",
        "{first}. And once more with {v}.",
        "{first} - and {v}!",
        "{first}. Don't forget {v}.",
        "{first}. [Also|Next|Then|Finally]: {v}.",
        "{first} as well as for {v}.",
        "{first}. I need it for {v}, too.",
        "{first}, {v} [is next|comes next].",
        "{first}. Handle {v} in the same way.",
        "{first}. [What about|How is it with] {v}?",
        "{first}. Again, but {v}.",
        "{first}. Now {v}.",
        "Twice, please: {first}, and again for {v}.",
        "{first}. And then again [using|on|with|for] {v}.",
        "{first}. It is the same thing with {v}.",
    ],
    held_out=["{first}. Do likewise for {v}."],
    later={PLAINER: ways("twice"), FULLER: ways("twice, more")},
)
_BOTH = templates(
    [
        "{first}. {second}",
        "{first}. Also: {second}",
        "{first} and also {second}",
        "{first}, and {second}",
        "1. {first}\n2. {second}",
        "{first}. Then {second}",
        "{first}. Besides, {second}",
        "{first}. [Another thing|One more thing|Something else]: {second}",
        "{first}. At the same time, {second}",
        "{first}; {second}",
        "- {first}\n- {second}",
        "{first}\n{second}",
        "I have two requests: {first}, {second}",
        "{first}. While you are at it, {second}",
        "{first}. Meanwhile: {second}",
        "[Both of these|Do both|Two jobs]: {first}, {second}",
        "{first}. That was the first one, the other is: {second}",
        "{first}, plus: {second}",
        "a) {first}\nb) {second}",
        "{first}. And finally, {second}",
        "{first}. And {second}",
        "One: {first}. Two: {second}",
        "{first} - and moreover {second}",
    ],
    held_out=["{first}. On top of that: {second}", "Two things. {first}. {second}"],
    later={PLAINER: ways("both"), FULLER: ways("both, more")},
)

_FEW_WORDS = 3
_LEADS = "in|for|of|to|at|from|with|about|by|on|near"
_LED_TWICE = 0.4  # "in Rome and in Bern"
_ERRANDS = 0.4  # of the tools in training are of everyday life
_PAIRED = ("{} and {}", "{} and {}", "{} as well as {}", "both {} and {}", "{} and also {}", "{} & {}")


def same_tool(w: World) -> Conversation:
    """One tool for two values."""
    if w.side is Side.TRAIN and w.chance(_ERRANDS) and (both := _for_two(w, made := errand(w))):
        return with_tools(w, "parallel", both, crowd(w, [made], most=4), ("same tool",))
    made = make_tool(w, count=1, kinds=("person", "place", "code", "company", "word", "title"))
    tools = crowd(w, [made], most=4)
    return with_tools(w, "parallel", _twice(w, made), tools, ("same tool",), again=lambda: _twice(w, made))


def _for_two(w: World, made: MadeTool) -> list[User | Model]:
    """One request with two values where it has one, as in "Call Ole and Mia."; nothing if this is no tool for that."""
    if not made.fields or any(each.required for each in made.fields[1:]):
        return []
    if made.fields[0].schema["type"] == "boolean":  # it is meant and not said
        return []
    taken, values = made.fields[0], [made.fields[0].draw(w) for _ in range(2)]
    asks = [ask for ask in made.asks if slots_of(ask) == {taken.label} and '"' not in ask and " => " not in ask]
    if not asks or values[0].text == values[1].text or not all(_ends_show(each) for each in values):
        return []
    both = w.one(_PAIRED).format(*(each.text for each in values))
    ask = w.one(asks)
    if (led := re.search(rf"\b({_LEADS}) {{{taken.label}}}", ask)) and w.like_people(_LED_TWICE):
        both = w.fill(f"{{one}} and {led[1]} {{other}}", one=values[0].text, other=values[1].text)
    text = w.fill(ask, **{taken.label: both})
    results = [result(w, made) for _ in values]
    calls = [
        Call(made.tool.name, {taken.name: each.json}, got.reply) for each, got in zip(values, results, strict=True)
    ]
    answer = " ".join(f"{each.text}: {got.answer}" for each, got in zip(values, results, strict=True))
    return [User(text), Model((Calls(tuple(calls)), Say(answer, results[0].facts + results[1].facts)))]


def _ends_show(what: Value) -> bool:
    """Whether it can stand beside another, as "Ole" can and "cheap lamps" cannot."""
    words, text = what.text.split(), what.text
    one = len(words) == 1 or (len(words) <= _FEW_WORDS and (text[0].isupper() or text[0].isdigit()))
    return one and text[-1].isalnum() and not isinstance(what.json, list) and not {",", "&", "and"} & {*words, *text}


def _twice(w: World, made: MadeTool) -> list[User | Model]:
    name = made.fields[0].name
    first = unfinished(w, made, {name: made.fields[0].draw(w)})
    second = made.fields[0].draw(w)
    got, also = result(w, made), result(w, made)
    calls = Calls(
        (Call(made.tool.name, first.arguments, got.reply), Call(made.tool.name, {name: second.json}, also.reply))
    )
    text = put(w, _TWICE, ("{first}. ~{v}", "{first}, ~{v}"), first=first.text, v=second.text)
    said = Say(f"{first.arguments[name]}: {got.answer} {second.json}: {also.answer}", got.facts + also.facts)
    return [User(text), Model((calls, said))]


def two_tools(w: World) -> Conversation:
    """Two tools for two requests."""
    make = errand if w.side is Side.TRAIN and w.chance(_ERRANDS) else _some_tool
    one = make(w)
    while (two := make(w)).noun == one.noun or two.tool.name == one.tool.name:
        pass
    tools = crowd(w, [one, two], most=5)
    return with_tools(
        w, "parallel", _both(w, one, two), tools, ("two tools",), again=lambda: _both(w, *w.rng.sample(tools, 2))
    )


def _some_tool(w: World) -> MadeTool:
    return make_tool(w, count=w.rng.randint(1, 2))


def _both(w: World, one: MadeTool, two: MadeTool) -> list[User | Model]:
    first, second = unfinished(w, one), request(w, two)
    got, also = result(w, one), result(w, two)
    calls = Calls((Call(one.tool.name, first.arguments, got.reply), Call(two.tool.name, second.arguments, also.reply)))
    text = put(w, _BOTH, ("~{first}. ~{second}", "{first}, ~{second}"), first=first.text, second=second.text)
    said = Say(f"{got.answer} {also.answer}", got.facts + also.facts)
    return [User(text), Model((calls, said))]
