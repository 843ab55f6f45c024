"""Two or three calls, one after another: a result is an argument of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, User
from training.data.fields import Field, field
from training.data.further import with_tools
from training.data.kinds import Value
from training.data.requests import unfinished
from training.data.results import result
from training.data.side import Side, templates
from training.data.skills.everyday import errand
from training.data.stages import FULLER, PLAINER, WIDER
from training.data.tools import MadeTool, crowd, make_tool
from training.data.ways import ways
from training.data.wild import put
from training.data.world import World

_ERRANDS = 0.3  # of what comes first in training is of everyday life
_LINKS = ("code", "email", "phone", "place", "person", "count", "title", "url", "date", "decimal", "street")

_THEN = templates(
    [
        "{first}. Then {verb} {a} {noun} with that {label}{rest}.",
        "{first} and then {verb} {a} {noun} with that {label}{rest}.",
        "{first}, and use the {label} to {verb} {a} {noun}{rest}.",
        "First {first}. After that, {verb} {a} {noun} for it{rest}.",
        "{first}; with the {label} you get, {verb} {a} {noun}{rest}.",
        "{first}. {Verb} {a} {noun} with the result{rest}.",
        "{Verb} {a} {noun}{rest}. You get the {label} like this: {first}.",
        "{first}. [Now|Next|Afterwards|Then] {verb} {a} {noun} by that {label}{rest}.",
        "{first}, [take|pass|hand over] the {label} and {verb} {a} {noun}{rest}.",
        "{first}. The {label} is needed to {verb} {a} {noun}{rest}.",
        "I want to {verb} {a} {noun}{rest}. The {label} comes from here: {first}.",
        "{first}. Use what comes back as {label} and {verb} {a} {noun}{rest}.",
        "{first}. When that is done, {verb} {a} {noun} with its {label}{rest}.",
        "{first}, so that you can {verb} {a} {noun}{rest}.",
        "To {verb} {a} {noun}{rest} you need {a} {label}. {first}.",
        "{first} => {label} => {verb} {a} {noun}{rest}.",
        "{first}. Give the {label} to whatever can {verb} {a} {noun}{rest}.",
        "1. {first}\n2. {verb} {a} {noun} with the {label}{rest}.",
        "{first}. The {label} is what I {verb} the {noun} with{rest}.",
        "{first} because I want to {verb} the {noun} of that {label}{rest}.",
        "[Begin|Step one|At first]: {first}. [Last|Step two|In the end]: {verb} {a} {noun}, {label} as found{rest}.",
        "{first}. Its {label} goes into the next step: {verb} {a} {noun}{rest}.",
        "{first}. [After|Behind] that, {label} in hand, {verb} {a} {noun}{rest}.",
        "{first}, and [as soon as|when] the {label} is there, {verb} {a} {noun}{rest}.",
        "{first}, [which gives|which returns] {a} {label} for you to {verb} {a} {noun}{rest}.",
        "[Two steps|Two parts]: {first}, and by {label}, {verb} {a} {noun}{rest}.",
        "{first}. {label}? Use it: {verb} {a} {noun}{rest}.",
        "{Verb} {a} {noun}{rest}. But [before that|first], {first}, for the {label}.",
        "{first}. [Wait for|Look at] the {label}, then {verb} {a} {noun}{rest}.",
        "{first}. {Verb} {a} {noun} with [whatever|the] {label} [it has|comes out]{rest}.",
    ],
    held_out=[
        "{first}, whose {label} you take to {verb} {a} {noun}{rest}.",
        "{first}. Once you have the {label}, {verb} {a} {noun}{rest}.",
        "Start here: {first}. Finish by {label}: {verb} {a} {noun}{rest}.",
    ],
    later={PLAINER: ways("then"), FULLER: ways("then, more")},
)

_WIDER = 0.3  # of steps from stage WIDER on are put together of these
_BEGUN = (
    "[|First |To start with, |Part one: |One thing: |Before all else, |You begin like this: |At the outset, ]{first}"
)
_NEXT = (
    "[. |.\n|; |? ]"
    "[Then|After it|Part two:|The second thing:|Later|With that done,|When that is done,|To end with,|To close,|And]"
)
_NAMED = "[by|with|for|using|from|through|on] [its|that|the|this]"
_THEN_WIDE = (
    f"{_BEGUN}{_NEXT} {_NAMED} {{label}}[,|:| -|] {{verb}} [{{a}}|the|one] {{noun}}{{rest}}.",
    f"{_BEGUN}{_NEXT} {{verb}} [{{a}}|the|one] {{noun}} {_NAMED} {{label}}[| you found| from there| of it]{{rest}}.",
    f"{_BEGUN}, and [then|later|after it|at last] {_NAMED} {{label}} {{verb}} [{{a}}|the|one] {{noun}}{{rest}}.",
    f"{_BEGUN}[, and|, then|, and then|, after that] {{verb}} [{{a}}|the|one] {{noun}} {_NAMED} {{label}}{{rest}}.",
)
_THEN_FORMS = (
    "{first}. ~{verb} ~{noun} ~{label} ~{rest}.",
    "~ {first}. ~{label} ~{verb} ~{noun}{rest}.",
    "~ {first}. ~{verb} ~{noun} ~{label} ~{rest}.",
    "{first}, ~{label} ~{verb} ~{noun} ~{rest}.",
    "~{verb} ~{noun} ~{rest}. ~{label} ~: {first}.",
)


def two_calls(w: World) -> Conversation:
    """One result is the next one's argument."""
    return _chain(w, 2)


def three_calls(w: World) -> Conversation:
    """And once more."""
    return _chain(w, 3)


def _chain(w: World, length: int) -> Conversation:
    everyday = w.side is Side.TRAIN and w.chance(_ERRANDS)
    first = errand(w) if everyday else make_tool(w, count=w.rng.randint(1, 2))
    links: list[_Link] = []
    while len(links) < length - 1:
        links.append(_link(w, [first, *(each.to for each in links)]))
    tools = crowd(w, [first, *(each.to for each in links)], most=6)
    return with_tools(w, f"chain of {length}", _linked(w, first, links), tools, again=lambda: _linked(w, first, links))


@dataclass(frozen=True)
class _Link:
    """What a tool's result is an argument of, and maybe one more."""

    field: Field
    to: MadeTool
    extra: Field | None


def _link(w: World, before: Sequence[MadeTool]) -> _Link:
    nouns, last = {each.noun for each in before}, before[-1]
    link = field(w, last.noun, "use", {each.name.lower() for each in last.fields}, (w.one(_LINKS),))
    while (made := make_tool(w, fields=[link])).noun in nouns:
        pass
    if not w.chance(0.35):
        return _Link(link, made, None)
    extra = field(w, made.noun, "use", {link.name.lower()}, (w.one(("message", "count", "title", "date")),))
    return _Link(link, make_tool(w, noun=made.noun, verb=made.verb, fields=[link, extra]), extra)


def _linked(w: World, first: MadeTool, links: Sequence[_Link]) -> list[User | Model]:
    asked = unfinished(w, first)
    text, arguments, calls, last = asked.text, asked.arguments, [], first
    for link in links:
        handed = link.field.draw(w)
        calls.append(Calls((Call(last.tool.name, arguments, _reply(w, link.field, handed)),)))
        last, word = link.to, w.one(link.to.verb.words)
        rest, arguments = _rest(w, link, handed)
        slots = {
            "first": text,
            "verb": word,
            "Verb": word.capitalize(),
            "noun": last.noun,
            "label": link.field.label,
            "rest": rest,
            "a": "an" if last.noun[0] in "aeiou" else "a",
        }
        wide = w.later(WIDER, _WIDER)
        text = (w.fill(w.one(_THEN_WIDE), **slots) if wide else put(w, _THEN, _THEN_FORMS, **slots)).rstrip(".")
    got = result(w, last)
    calls.append(Calls((Call(last.tool.name, arguments, got.reply),)))
    return [User(text + "."), Model((*calls, Say(got.answer, got.facts)))]


def _rest(w: World, link: _Link, handed: Value) -> tuple[str, dict[str, Json]]:
    arguments = {link.field.name: handed.json}
    if link.extra is None:
        return "", arguments
    drawn = link.extra.draw(w)
    return f" and {link.extra.label} {drawn.text}", arguments | {link.extra.name: drawn.json}


def _reply(w: World, link: Field, handed: Value) -> dict[str, Json]:
    table: dict[str, Json] = {link.name: handed.json}
    if w.chance(0.4):
        table[w.made_up()] = w.one([w.rng.randint(1, 500), w.made_up(), True])
    return table
