"""What tools answer, and what is to be said about it."""

from __future__ import annotations

from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json
from training.data.kinds import KINDS, value
from training.data.side import Side, split, templates
from training.data.tools import MadeTool
from training.data.world import World

_TELL_ONE = templates(
    ["The {label} is {v}."],  # one way of saying it: what cannot be foreseen cannot be learned
    held_out=["As for the {label}, it is {v}."],
)
_DONE = templates(
    ["Done. {told}"],
    held_out=["All set. {told}"],
)
_SENTENCES = templates(
    [
        "It is {adj}",
        "The {noun} is {adj}",
        "The {noun} is {adj} and {adj2}",
        "{adj} today",
        "The {noun} in {place} is {adj}",
        "{name} has it",
        "Found {n} of them",
        "{n} {unit} left",
        "The {noun} costs {n} {unit}",
        "It's {adj}, {n} {unit}",
        "The {noun} was moved to {place}",
        "{adj}",
        "{place}",
        "{name}",
        "{n} {unit}",
        "Mostly {adj}, later {adj2}",
        "[Rather|Very|Quite|Always|Partly] {adj}",
        "Since yesterday {adj}",
        "{name} took it to {place}",
        "{name} [says|thinks|writes] it is {adj}",
        "[Sent|Given|Sold|Shown|Lent] to {name}",
        "[Left|Seen|Stored|Waiting|Built] in {place}",
        "From {place} to {place2}",
        "[About|Exactly|Almost|Another] {n} {unit}",
        "{n} {unit}, and {adj}",
        "There are {n}, all of them {adj}",
        "It belongs to {name}",
        "Ask {name} in {place}",
        "[Your|Our|Their] {noun} is {adj} [now|again|today]",
        "{noun}: {adj}",
        "{noun}: {n} {unit}",
        "{adj} in {place}, {adj2} in {place2}",
        "The {noun} of {name} is {adj}",
        "{name} is {adj}",
        "It weighs {n} {unit}",
        "Came {adj} from {place}",
        "{name} has {n} {unit} of it",
        "You will get it in {place}",
        "It turned {adj} after {n} {unit}",
    ],
    held_out=["Reported as {adj}", "{n} {unit} so far, {adj}", "Currently {adj} near {place}", "Held by {name}"],
)
_ADJECTIVES = split(
    """sunny cloudy cold warm late early full empty broken fine ready busy calm loud quiet green open closed dry wet
    delayed cancelled confirmed approved unknown heavy light stable""",
    held_out="foggy crowded overdue flawless frozen dusty vacant murky brittle serene",
)
_EXTRA = split(
    "status, total, owner, level, place, version, score, updated, next step, remaining, source, category, balance",
    held_out="outcome, rating, custodian, stage, vintage, leftover, grade",
)
_STATUS = split("ok success done created accepted queued", held_out="complete fulfilled stored")


@dataclass(frozen=True)
class Result:
    """A tool's reply, what to say about it, and what has to be in that."""

    reply: dict[str, Json] | str
    answer: str
    facts: tuple[str, ...]


def result(w: World, made: MadeTool) -> Result:
    """What a tool answers that was called as it should be."""
    form = w.rng.random()
    if form < 0.35:
        return sentence(w, made)
    if form < 0.55:
        return _value(w, made)
    return _record(w, made)


def brief(w: World) -> Result:
    """That it is done, in a word."""
    status = w.pick(_STATUS)
    return Result({"status": status} if w.chance(0.5) else status, "Done.", ())


def tell(w: World, noun: str, items: dict[str, str]) -> str:
    """A sentence with all of these."""
    parts = [f"the {name.replace('_', ' ')} is {shown}" for name, shown in items.items()]
    if len(parts) == 1:
        return w.say(_TELL_ONE, label=next(iter(items)).replace("_", " "), v=items[next(iter(items))], noun=noun)
    told = ", ".join(parts[:-1]) + " and " + parts[-1]
    return told[0].upper() + told[1:] + "."


def shown(item: Json) -> str:
    """A value as it is written in a sentence."""
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, list):
        return ", ".join(map(shown, item))
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def sentence(w: World, made: MadeTool) -> Result:
    """A tool that answers in words."""
    text = w.say(
        _SENTENCES,
        adj=w.pick(_ADJECTIVES),
        adj2=w.pick(_ADJECTIVES),
        noun=made.noun.split()[-1],
        place=draw.place(w),
        place2=draw.place(w) if w.side is Side.TRAIN else "",  # none that is held out asks for it
        name=draw.person(w),
        n=str(w.integer(2, 2000)),
        unit=value(KINDS["unit"], w).text,
    )
    text = text[0].upper() + text[1:]
    return Result(text + ("." if w.chance(0.5) else ""), text + ".", (text,))


def _value(w: World, made: MadeTool) -> Result:
    kind = KINDS[w.one(("count", "decimal", "code", "person", "place", "title", "date", "word"))]
    text = kind.draw(w)
    reply: dict[str, Json] | str = text
    if w.chance(0.6):  # a bare value may come under any of these names, and as a number
        item: Json = text if kind.type == "string" else float(text) if "." in text else int(text)
        reply = {w.one(("result", "value", "output", "answer")): item}
    return Result(reply, w.say(_TELL_ONE, label=made.noun, v=text, noun=made.noun), (text,))


def _record(w: World, made: MadeTool) -> Result:
    table: dict[str, Json] = {}
    for _ in range(w.rng.randint(1, 3)):
        name = w.pick(_EXTRA).replace(" ", "_") if w.chance(0.6) else w.made_up()
        if w.chance(0.2):
            table[name] = w.pick(_ADJECTIVES)
        elif w.chance(0.12):
            kind = KINDS[w.one(("person", "word", "count", "title", "place"))]
            table[name] = [value(kind, w).json for _ in range(w.rng.randint(1, 4))]
        else:
            kind = KINDS[
                w.one(("count", "decimal", "code", "person", "place", "title", "date", "time", "email", "word"))
            ]
            table[name] = value(kind, w).json
    if not made.verb.asks and w.chance(0.4):
        table = {"status": w.pick(_STATUS), **dict(list(table.items())[:1])}
    items = {name: shown(table[name]) for name in sorted(table, key=str.lower)}
    told = tell(w, made.noun, items)
    if not made.verb.asks:
        told = w.say(_DONE, told=told, noun=made.noun)
    return Result(table, told, tuple(items.values()))
