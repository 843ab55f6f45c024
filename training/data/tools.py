"""Tools that nobody has seen before, and requests that one of them can serve."""

from __future__ import annotations

from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Tool
from training.data.fields import Field, field, object_schema
from training.data.side import Side, listed, split, templates
from training.data.wild import put
from training.data.words import common, things
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

_MANY, _FEW = 4, (0, 0, 1, 1, 2)  # tools beside one, and the fields of each
_SMALL = 0.6  # of so many tools in training are small ones
_SAME_NOUN, _SAME_VERB = 0.25, 0.2  # of the others are about the same thing, and do the same to something else
_SAME_VERB_TAUGHT = 0.45  # in training: a verb that is in a tool's name is taken for the right tool too easily
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

_DESCRIPTION_FORMS = ("~{verb} ~{noun} ~", "~{verbs} ~{nouns} ~", "~{noun} ~{verb} ~", "~{verb} ~{nouns} ~{filler}")

_FILLERS = split(
    """Returns the result as text., Only call this when the user asks for it., Fails if nothing is found.,
    May take a few seconds., Returns an object., The result is final., Use with care., All fields are checked first.,
    Works for every account., Times are local., Values are not rounded.""",
    held_out="Answers with a short record., Needs no further permission., Can be called again later.",
)


@dataclass(frozen=True)
class MadeTool:
    """A tool, and what it was made of."""

    tool: Tool
    verb: Verb
    noun: str
    fields: tuple[Field, ...]
    asks: tuple[str, ...] = ()  # how it is asked for, where that was written by hand


def subject(w: World) -> str:
    """What a tool is about: a noun, maybe with another word in front."""
    form = w.rng.random()
    if form < 0.30:
        return w.pick(things.NOUNS)
    if form < 0.50:
        return f"{w.pick(things.MODIFIERS)} {w.pick(things.NOUNS)}"
    return w.made_up() if form < 0.75 else f"{w.made_up()} {w.pick(things.NOUNS)}"


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
    verb = verb or _verb(w)
    word = w.one(verb.words[:3])
    if fields is None:
        taken: set[str] = set()
        count = w.one((0, 1, 1, 1, 2, 2, 2, 3, 3, 4)) if count is None else count
        fields = [field(w, noun, word, taken, kinds) for _ in range(count)]
    description = put(
        w,
        _DESCRIPTIONS,
        _DESCRIPTION_FORMS,
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


def _verb(w: World) -> Verb:
    """The real ones are few enough to be known by heart, and then no other begins a name."""
    if w.strange and w.chance(w.strange):
        return Verb((w.one(common.VERBS) if w.side is Side.TRAIN and w.chance(0.5) else w.made_up(),))
    return w.one(_VERBS)


def others(w: World, wanted: MadeTool, count: int) -> list[MadeTool]:
    """Other tools beside one: some about the same thing, some doing the same to something else.

    In training many of them are small ones, so that they fit into a row; the others fit the longer rows at its end.
    """
    made: list[MadeTool] = []
    small = w.side is Side.TRAIN and count >= _MANY and w.chance(_SMALL)
    same_verb = _SAME_VERB_TAUGHT if w.side is Side.TRAIN else _SAME_VERB
    names = {wanted.tool.name.lower()}
    pairs = {(wanted.noun, wanted.verb)}
    while len(made) < count:
        form, fields = w.rng.random(), w.one(_FEW) if small else None
        noun = wanted.noun if form < _SAME_NOUN else None
        verb = wanted.verb if noun is None and form < _SAME_NOUN + same_verb else None
        other = make_tool(w, noun=noun, verb=verb, count=fields)
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


def article(noun: str) -> str:
    """Whether it is "a" or "an"."""
    return "an" if noun[0].lower() in "aeiou" else "a"


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
