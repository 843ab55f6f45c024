"""Two or three calls, one after another: a result is an argument of the next."""

from __future__ import annotations

from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, User
from training.data.fields import Field, field
from training.data.further import with_tools
from training.data.kinds import Value
from training.data.requests import unfinished
from training.data.results import result
from training.data.side import templates
from training.data.tools import MadeTool, crowd, make_tool
from training.data.wild import put
from training.data.world import World

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
    ],
    held_out=[
        "{first}, whose {label} you take to {verb} {a} {noun}{rest}.",
        "{first}. Once you have the {label}, {verb} {a} {noun}{rest}.",
        "Start here: {first}. Finish by {label}: {verb} {a} {noun}{rest}.",
    ],
)

_THEN_FORMS = (
    "{first}. ~{verb} ~{noun} ~{label} ~{rest}.",
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
    first = make_tool(w, count=w.rng.randint(1, 2))
    asked = unfinished(w, first)
    text, calls, tools = asked.text, [], [first]
    arguments = asked.arguments
    for _ in range(length - 1):
        link = field(w, tools[-1].noun, "use", {each.name.lower() for each in tools[-1].fields}, (w.one(_LINKS),))
        handed = link.draw(w)
        calls.append(Calls((Call(tools[-1].tool.name, arguments, _reply(w, link, handed)),)))
        following, rest, arguments = _next(w, link, handed, {each.noun for each in tools})
        word = w.one(following.verb.words)
        text = put(
            w,
            _THEN,
            _THEN_FORMS,
            first=text,
            verb=word,
            Verb=word.capitalize(),
            noun=following.noun,
            label=link.label,
            rest=rest,
            a="an" if following.noun[0] in "aeiou" else "a",
        ).rstrip(".")
        tools.append(following)
    got = result(w, tools[-1])
    calls.append(Calls((Call(tools[-1].tool.name, arguments, got.reply),)))
    turn = Model((*calls, Say(got.answer, got.facts)))
    return with_tools(w, f"chain of {length}", (User(text + "."), turn), crowd(w, tools, most=6))


def _reply(w: World, link: Field, handed: Value) -> dict[str, Json]:
    table: dict[str, Json] = {link.name: handed.json}
    if w.chance(0.4):
        table[w.made_up()] = w.one([w.rng.randint(1, 500), w.made_up(), True])
    return table


def _next(w: World, link: Field, handed: Value, nouns: set[str]) -> tuple[MadeTool, str, dict[str, Json]]:
    """A tool that takes what was handed over, maybe with one more argument; how that is said; the arguments."""
    while (made := make_tool(w, fields=[link])).noun in nouns:
        pass
    arguments = {link.name: handed.json}
    if not w.chance(0.35):
        return made, "", arguments
    extra = field(w, made.noun, "use", {link.name.lower()}, (w.one(("message", "count", "title", "date")),))
    made = make_tool(w, noun=made.noun, verb=made.verb, fields=[link, extra])
    drawn = extra.draw(w)
    return made, f" and {extra.label} {drawn.text}", arguments | {extra.name: drawn.json}
