"""What users say who want a tool called, and the arguments that are right."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from training.data import asks, draw
from training.data.conversation import Json
from training.data.fields import Field, keyed, mention
from training.data.kinds import Value
from training.data.scenario import told
from training.data.side import Side
from training.data.stages import FULLER, PLAINER
from training.data.template import slots_of
from training.data.tools import MadeTool, article
from training.data.ways import ways
from training.data.wild import put
from training.data.words import things
from training.data.world import World

_REMARKED, _BARE_REMARKED = 0.15, 0.5  # where there is nothing to say but the request itself, half
_INSIDE = 0.5  # of what something follows is said in few words from stage FULLER on
_AROUND = 0.2  # of what is asked in the stage of plain sentences stands between other words


@dataclass(frozen=True)
class Request:
    """What a user asks of a tool, and the arguments that are right."""

    text: str
    arguments: dict[str, Json]
    values: dict[str, Value]


def choose_values(w: World, made: MadeTool) -> dict[str, Value]:
    """Values for the required fields, and for some of the others."""
    return {each.name: each.draw(w) for each in made.fields if each.required or w.chance(0.4)}


def request(w: World, made: MadeTool, values: dict[str, Value] | None = None, *, inside: bool = False) -> Request:
    """What a user says who wants this tool called: ``inside`` a longer sentence, in few words and plainly."""
    if made.asks:
        return _written(w, made)
    values = choose_values(w, made) if values is None else values
    arguments = {name: each.json for name, each in values.items()}
    text = _said(w, made, values, inside=inside).strip()
    if not inside and w.side is Side.TRAIN and w.chance(_REMARKED if values else _BARE_REMARKED):
        text = f"{text}{'' if text[-1] in '.?!' else '.'} {w.one(asks.REMARKS)}"
    return Request(text, arguments, values)


def unfinished(w: World, made: MadeTool, values: dict[str, Value] | None = None) -> Request:
    """The same, without the mark at its end: something follows. No value loses its own."""
    inside = w.later(FULLER, _INSIDE)
    while True:
        asked = request(w, made, values, inside=inside)
        text = asked.text.rstrip(".?! ")
        if all(
            value.text.casefold() in text.casefold() for value in asked.values.values() if isinstance(value.json, str)
        ):
            return Request(text, asked.arguments, asked.values)


def context(w: World) -> str:
    """A sentence that says nothing that matters."""
    return w.say(
        asks.CONTEXTS,
        modifier=w.pick(things.MODIFIERS),
        other=w.pick(things.NOUNS),
        name=draw.person(w),
        place=draw.place(w),
    )


def _said(w: World, made: MadeTool, values: dict[str, Value], *, inside: bool) -> str:
    fields = [each for each in made.fields if each.name in values]
    w.rng.shuffle(fields)
    if not fields:
        slots = _slots(w, made, made.noun)
        if inside:
            return _capital(w, w.fill(w.one(ways("inside")), mentions="", **slots))
        if _asks(w, made):
            return _capital(w, put(w, asks.QUESTIONS, asks.QUESTION_FORMS, mentions="", **slots))
        return _capital(w, put(w, asks.BARE, asks.BARE_FORMS, **slots))
    noun = made.noun
    alike = Counter(each.typed for each in made.fields)
    known = {each.name for each in fields if w.stage < FULLER or alike[each.typed] == 1}  # no other is of its kind
    before = [each for each in fields if each.before and each.name in known]
    first = next((each for each in before if each.hinted or len(fields) == 1), None)
    if first is not None and w.chance(0.25):
        noun = f"{values[first.name].text} {noun}"
        fields.remove(first)
    slots = _slots(w, made, noun)
    form = w.rng.random()
    if noun == made.noun and form < 0.12 and not inside:
        listed = _arguments(w, fields, values)
        return put(w, asks.BY_NAME, asks.BY_NAME_FORMS, pairs=_pairs(w, fields, values), list=listed, **slots)
    if form < 0.20 and len(fields) > 1 and not inside:
        lines = "\n".join(f"{w.one(['- ', '', '* '])}{each.label}: {values[each.name].text}" for each in fields)
        return put(w, asks.LISTED, asks.LISTED_FORMS, lines=lines, **slots)
    mentions = [
        mention(
            w,
            each,
            values[each.name],
            alone=len(fields) == 1 and each.name in known,
            unlike=alike[each.typed] == 1,
        )
        for each in fields
    ]
    shown = w.one([" ", ", ", " and "] if len(mentions) < 3 else [" ", ", "]).join(mentions)
    if inside:
        return _capital(w, w.fill(w.one(ways("inside")), mentions=shown, **slots))
    if _asks(w, made):
        return _capital(w, put(w, asks.QUESTIONS, asks.QUESTION_FORMS, mentions=shown, **slots))
    return _capital(w, put(w, asks.REQUESTS, asks.REQUEST_FORMS, mentions=shown, **slots))


def _written(w: World, made: MadeTool) -> Request:
    said, implied = told(w.one(made.asks))
    wanted = slots_of(said)
    values = {each.name: each.draw(w) for each in made.fields if each.label in wanted}
    if w.side is Side.TRAIN:
        said = typed_by_somebody(w, said)
    text = w.fill(said, **{each.label: values[each.name].text for each in made.fields if each.name in values})
    arguments = {
        each.name: values[each.name].json if each.name in values else meant(each, implied[each.label])
        for each in made.fields
        if each.name in values or each.label in implied
    }
    return Request(text, arguments, values)


def meant(field: Field, text: str) -> Json:
    """An argument that a request means without saying it, in its field's type."""
    if field.schema["type"] == "boolean":
        return text == "true"
    return int(text) if field.schema["type"] == "integer" else text


def typed_by_somebody(w: World, said: str) -> str:
    """A request in the words of its template, and in a manner that many have."""
    if w.later(PLAINER, _AROUND):
        return w.one(ways("around")).replace("{ask}", said)
    if said[0].isalpha() and w.chance(0.2):
        said = said[0].lower() + said[1:]
    if said[-1] in ".?" and w.chance(0.2):
        said = said[:-1]
    if w.chance(0.1):
        said = f"{said}{'' if said[-1] in '.?!' else '.'} {w.one(asks.REMARKS)}"
    elif w.chance(0.1):
        said = f"{context(w)} {said}"
    elif said[0].isalpha() and w.chance(0.1):
        said = f"{w.one(asks.HAILS)}{said[0].lower() if said[1:2] != ' ' else said[0]}{said[1:]}"
    return said


def _slots(w: World, made: MadeTool, noun: str) -> dict[str, str]:
    word = w.one(made.verb.words)
    return {
        "verb": word,
        "Verb": word.capitalize(),
        "noun": noun,
        "a": article(noun),
        "A": article(noun).capitalize(),
        "tool": made.tool.name,
        "open": w.one(["", "", "", w.pick(asks.OPENERS) + " "]),
        "close": w.one(asks.CLOSERS) if w.side is Side.TRAIN and w.chance(0.4) else w.one(asks.ENDS),
        "context": context(w),
    }


def _asks(w: World, made: MadeTool) -> bool:
    return made.verb.asks and w.chance(0.5)


def _capital(w: World, text: str) -> str:
    text = re.sub(r" +(?=[.,?!]|$)", "", text)  # where there was nothing to mention
    return text[0].upper() + text[1:] if w.chance(0.8) else text


def _pairs(w: World, fields: list[Field], values: dict[str, Value]) -> str:
    if w.chance(0.5):
        return " and ".join(keyed(w, each, values[each.name]).removeprefix("with ") for each in fields)
    return ", ".join(f"{each.name}={values[each.name].text}" for each in fields)


def _arguments(w: World, fields: list[Field], values: dict[str, Value]) -> str:
    if len(fields) == 1 and w.chance(0.8):
        return values[fields[0].name].text
    return ", ".join(f"{each.name}={values[each.name].text}" for each in fields)
