"""Tools that nobody has seen before, and requests that one of them can serve."""

from __future__ import annotations

import re
from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json, Tool
from training.data.fields import Field, field, keyed, mention, object_schema
from training.data.kinds import Value
from training.data.side import listed, split, templates
from training.data.template import slots_of
from training.data.words import things
from training.data.world import World


@dataclass(frozen=True)
class Verb:
    """What tools do: words that mean the same. The first name it in the code, all of them may ask for it."""

    words: tuple[str, ...]
    asks: bool = False  # it answers a question, so a question can ask for it


_VERBS = (
    Verb(("get", "find", "fetch", "look up", "show", "check", "retrieve"), asks=True),
    Verb(
        ("create", "add", "make", "register", "set up"),
    ),
    Verb(
        ("delete", "remove", "cancel", "drop"),
    ),
    Verb(
        ("update", "change", "edit", "modify"),
    ),
    Verb(
        ("send", "forward", "submit"),
    ),
    Verb(("calculate", "compute", "work out", "evaluate"), asks=True),
    Verb(
        ("book", "reserve"),
    ),
    Verb(
        ("start", "run", "launch"),
    ),
    Verb(
        ("stop", "pause", "halt"),
    ),
    Verb(("count", "tally"), asks=True),
    Verb(
        ("convert", "transform"),
    ),
    Verb(
        ("approve", "confirm"),
    ),
    *(Verb((word,)) for word in listed("print archive rate share lock unlock scan import export rename compare sort")),
)

_NAME_ENDS = ("tool", "service", "api", "helper", "action")

_DESCRIPTIONS = templates(
    [
        "{Verb} {a} {noun}.",
        "{Verb} the {noun}.",
        "{Verbs} {a} {noun}.",
        "{Verbs} {nouns}.",
        "{Verb} {a} {noun}",
        "Use this to {verb} {a} {noun}.",
        "{Verb} {a} {noun} of the user.",
        "Tool that {verbs} {nouns}.",
        "{Verbs} the {noun} and returns the result.",
        "Lets you {verb} {nouns}. {filler}",
        "{Verb} {nouns}. {filler}",
        "{Verb} {a} {noun}.\n\n    {filler}",
        "This tool can {verb} {a} {noun}. {filler}",
        "{noun}: {verb}",
        "A function to {verb} {nouns}.",
    ],
    held_out=[
        "Helps to {verb} {nouns}.",
        "{Verb} one {noun} at a time. {filler}",
        "Endpoint that {verbs} {a} {noun}.",
        "Will {verb} the {noun} for you.",
        "Call it in order to {verb} {a} {noun}.",
    ],
)

_FILLERS = split(
    """Returns the result as text., Only call this when the user asks for it., Fails if nothing is found.,
    May take a few seconds., Returns an object., The result is final., Use with care., All fields are checked first.,
    Works for every account., Times are local., Values are not rounded.""",
    held_out="Answers with a short record., Needs no further permission., Can be called again later.",
)

_REQUESTS = templates(
    [
        "{open}{verb} {a} {noun} {mentions}{close}",
        "{open}{verb} the {noun} {mentions}{close}",
        "{open}{verb} {a} {noun} {mentions}{close}",
        "{open}{verb} {noun} {mentions}{close}",
        "{context} {Verb} the {noun} {mentions}.",
        "I [need|want|would like] to {verb} {a} {noun} {mentions}.",
        "I'd like you to {verb} {a} {noun} {mentions}.",
        "{noun}, {verb}, {mentions}",
        "We have to {verb} {a} {noun} {mentions}",
        "My boss wants me to {verb} {a} {noun} {mentions}.",
        "{context} Can you {verb} {a} {noun} {mentions}?",
        "It's time to {verb} {a} {noun} {mentions}.",
        "Use the tool to {verb} {a} {noun} {mentions}.",
        "{Verb} {a} {noun} {mentions}, using the right tool.",
    ],
    held_out=[
        "Let's {verb} {a} {noun} {mentions}.",
        "Someone has to {verb} the {noun} {mentions} - do it now.",
        "Go ahead and {verb} {a} {noun} {mentions}.",
        "{context} So {verb} {a} {noun} {mentions}, will you?",
        "What I need: {verb} {a} {noun} {mentions}.",
    ],
)

_QUESTIONS = templates(
    [
        "What is the {noun} {mentions}?",
        "What's the {noun} {mentions}?",
        "Tell me the {noun} {mentions}.",
        "Do you know the {noun} {mentions}?",
        "I'd like to know the {noun} {mentions}.",
        "How is the {noun} {mentions}?",
        "Which {noun} is it {mentions}?",
        "{context} What is the {noun} {mentions}?",
        "the {noun} {mentions}?",
        "Any {noun} {mentions}?",
        "Can you tell me what the {noun} {mentions} is?",
    ],
    held_out=[
        "I was wondering about the {noun} {mentions}.",
        "Give me the {noun} {mentions}.",
        "And what would the {noun} be {mentions}?",
        "Is there a {noun} {mentions}?",
    ],
)

_LISTED = templates(
    [
        "{Verb} {a} {noun}:\n{lines}",
        "Please {verb} the following {noun}.\n{lines}",
        "{lines}\n\nUse this to {verb} {a} {noun}.",
    ],
    held_out=["Here is what I have, {verb} the {noun} with it:\n{lines}"],
)

_BY_NAME = templates(
    [
        "Call {tool} with {pairs}.",
        "Run {tool}({list}).",
        "What is {tool}({list})?",
        "Use {tool} [on|for|with] {list}.",
        "What does {tool}({list}) give?",
        "Please use the {tool} tool with {pairs}.",
        "Evaluate {tool}({list}) for me.",
        "Tell me the value of {tool}({list}).",
    ],
    held_out=[
        "I need the result of {tool}({list}).",
        "Invoke {tool} using {pairs}.",
        "Compute {tool}({list}) with the tool.",
    ],
)

_BARE = templates(
    [
        "{open}{verb} {a} {noun}{close}",
        "{Verb} the {noun} now.",
        "Use {tool}.",
        "Call {tool}()[.|, please.]",
        "I need you to {verb} {a} {noun}.",
        "Run {tool} [please|now|for me].",
        "What does {tool}() give?",
    ],
    held_out=["Time to {verb} the {noun}!", "Just {verb} {a} {noun} already.", "Do a {tool}() for me."],
)

_OPENERS = split(
    "Please, Could you, Can you, Would you, I need you to, Hey can you, Kindly, Now, Next, Quickly, Then, Ok so",
    held_out="Be so kind and, Might you, You should, Right then",
)

_CONTEXTS = templates(
    [
        "I'm [planning|preparing] [the|a] {modifier} {other}.",
        "There was a problem with the {other} yesterday.",
        "{name} asked me about this.",
        "I just came back from {place}.",
        "We are [quite |]busy today.",
        "It is about the {other}.",
        "My {other} is [late|broken|lost].",
        "This is for {name}'s {other}.",
        "I don't remember this myself.",
        "The {modifier} team is waiting.",
        "Good morning!",
        "Thanks for the help so far.",
        "I have a question.",
    ],
    held_out=[
        "The {other} people keep calling me.",
        "Long story short:",
        "{name} is getting impatient.",
        "Before I forget it:",
        "I only have a minute.",
    ],
)


@dataclass(frozen=True)
class MadeTool:
    """A tool, and what it was made of."""

    tool: Tool
    verb: Verb
    noun: str
    fields: tuple[Field, ...]
    asks: tuple[str, ...] = ()  # how it is asked for, where that was written by hand


@dataclass(frozen=True)
class Request:
    """What a user asks of a tool, and the arguments that are right."""

    text: str
    arguments: dict[str, Json]
    values: dict[str, Value]


def subject(w: World) -> str:
    """What a tool is about: a noun, maybe with another word in front."""
    form = w.rng.random()
    if form < 0.40:
        return w.pick(things.NOUNS)
    if form < 0.70:
        return f"{w.pick(things.MODIFIERS)} {w.pick(things.NOUNS)}"
    return w.made_up() if form < 0.85 else f"{w.made_up()} {w.pick(things.NOUNS)}"


def make_tool(
    w: World,
    *,
    noun: str | None = None,
    verb: Verb | None = None,
    count: int | None = None,
    kinds: tuple[str, ...] | None = None,
    fields: list[Field] | None = None,
) -> MadeTool:
    """A tool: about ``noun`` and with so many fields, if they are given."""
    noun = noun or subject(w)
    verb = verb or w.one(_VERBS)
    word = w.one(verb.words[:3])
    if fields is None:
        taken: set[str] = set()
        count = w.one((0, 1, 1, 1, 2, 2, 2, 3, 3, 4)) if count is None else count
        fields = [field(w, noun, word, taken, kinds) for _ in range(count)]
    description = w.say(
        _DESCRIPTIONS,
        verb=word,
        Verb=word.capitalize(),
        verbs=_third(word),
        Verbs=_third(word).capitalize(),
        a=article(noun),
        noun=noun,
        nouns=draw.plural(noun),
        filler=w.pick(_FILLERS),
    )
    tool = Tool(_tool_name(w, word, noun), description, object_schema(fields))
    return MadeTool(tool, verb, noun, tuple(fields))


def others(w: World, wanted: MadeTool, count: int) -> list[MadeTool]:
    """Other tools beside one: some about the same thing, some doing the same to something else."""
    made: list[MadeTool] = []
    names = {wanted.tool.name.lower()}
    pairs = {(wanted.noun, wanted.verb)}
    while len(made) < count:
        form = w.rng.random()
        if form < 0.25:
            other = make_tool(w, noun=wanted.noun)
        elif form < 0.45:
            other = make_tool(w, verb=wanted.verb)
        else:
            other = make_tool(w)
        clash = other.noun != wanted.noun and (other.noun in wanted.noun or wanted.noun in other.noun)
        asks = other.noun == wanted.noun and other.verb.asks and wanted.verb.asks
        if other.tool.name.lower() in names or (other.noun, other.verb) in pairs or clash or asks:
            continue
        names.add(other.tool.name.lower())
        pairs.add((other.noun, other.verb))
        made.append(other)
    return made


def crowd(w: World, wanted: list[MadeTool], most: int = 8, least: int = 1) -> list[MadeTool]:
    """These tools among others, in any order; early in training fewer than were asked for."""
    most = max(len(wanted), min(most, 2 + round(w.ease * 6)))
    count = w.rng.randint(min(max(least, len(wanted)), most), most)
    tools = list(wanted)
    nouns = {each.noun for each in wanted} if len(wanted) > 1 else set()
    names = {each.tool.name.lower() for each in wanted}
    tools += [
        each
        for each in others(w, w.one(wanted), count - len(wanted))
        if each.noun not in nouns and each.tool.name.lower() not in names
    ]
    w.rng.shuffle(tools)
    return tools


def choose_values(w: World, made: MadeTool) -> dict[str, Value]:
    """Values for the required fields, and for some of the others."""
    return {each.name: each.draw(w) for each in made.fields if each.required or w.chance(0.4)}


def request(w: World, made: MadeTool, values: dict[str, Value] | None = None) -> Request:
    """What a user says who wants this tool called."""
    if made.asks:
        return _written(w, made)
    values = choose_values(w, made) if values is None else values
    arguments = {name: each.json for name, each in values.items()}
    return Request(_said(w, made, values).strip(), arguments, values)


def article(noun: str) -> str:
    """Whether it is "a" or "an"."""
    return "an" if noun[0].lower() in "aeiou" else "a"


def context(w: World) -> str:
    """A sentence that says nothing that matters."""
    return w.say(
        _CONTEXTS,
        modifier=w.pick(things.MODIFIERS),
        other=w.pick(things.NOUNS),
        name=draw.person(w),
        place=draw.place(w),
    )


def _said(w: World, made: MadeTool, values: dict[str, Value]) -> str:
    fields = [each for each in made.fields if each.name in values]
    w.rng.shuffle(fields)
    if not fields:
        slots = _slots(w, made, made.noun)
        return _capital(w, w.say(_QUESTIONS, mentions="", **slots) if _asks(w, made) else w.say(_BARE, **slots))
    noun = made.noun
    first = next((each for each in fields if each.before and (each.hinted or len(fields) == 1)), None)
    if first is not None and w.chance(0.25):
        noun = f"{values[first.name].text} {noun}"
        fields.remove(first)
    slots = _slots(w, made, noun)
    form = w.rng.random()
    if noun == made.noun and form < 0.12:
        return w.say(_BY_NAME, pairs=_pairs(w, fields, values), list=_arguments(w, fields, values), **slots)
    if form < 0.20 and len(fields) > 1:
        lines = "\n".join(f"{w.one(['- ', '', '* '])}{each.label}: {values[each.name].text}" for each in fields)
        return w.say(_LISTED, lines=lines, **slots)
    mentions = [mention(w, each, values[each.name], alone=len(fields) == 1) for each in fields]
    shown = w.one([" ", ", ", " and "] if len(mentions) < 3 else [" ", ", "]).join(mentions)
    return _capital(w, w.say(_QUESTIONS if _asks(w, made) else _REQUESTS, mentions=shown, **slots))


def _written(w: World, made: MadeTool) -> Request:
    ask = w.one(made.asks)
    wanted = slots_of(ask)
    values = {each.name: each.draw(w) for each in made.fields if each.label in wanted}
    text = w.fill(ask, **{each.label: values[each.name].text for each in made.fields if each.name in values})
    return Request(text, {name: each.json for name, each in values.items()}, values)


def _slots(w: World, made: MadeTool, noun: str) -> dict[str, str]:
    word = w.one(made.verb.words)
    return {
        "verb": word,
        "Verb": word.capitalize(),
        "noun": noun,
        "a": article(noun),
        "tool": made.tool.name,
        "open": w.one(["", "", "", w.pick(_OPENERS) + " "]),
        "close": w.one([".", "", "?", "!", " please.", ", thanks."]),
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


def _tool_name(w: World, verb: str, noun: str) -> str:
    words = [*verb.split(), *noun.split()]
    form = w.rng.random()
    if form < 0.10:
        words = [*noun.split(), *verb.split()]
    elif form < 0.22:
        words = [*noun.split(), w.one(_NAME_ENDS)]
    elif form < 0.28:
        words = noun.split()
    elif form < 0.34:
        words = [w.made_up(), *words]
    style = w.rng.random()
    if style < 0.75:
        return "_".join(words)
    if style < 0.88:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return "".join(word.capitalize() for word in words) if style < 0.94 else "-".join(words)


def _third(verb: str) -> str:
    first, *rest = verb.split()
    ending = "es" if first.endswith(("s", "x", "ch", "sh", "o")) else "s"
    first = first[:-1] + "ies" if first.endswith("y") and first[-2] not in "aeiou" else first + ending
    return " ".join([first, *rest])
