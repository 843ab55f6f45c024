"""Fill a schema from a paragraph: as a call, or as JSON."""

from __future__ import annotations

import json

from training.data import draw
from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, Tool, User
from training.data.fields import Field, field, kinds_of, object_schema
from training.data.kinds import Value
from training.data.requests import context
from training.data.schemas import of_a_class
from training.data.side import Side, split, templates
from training.data.stages import FULLER, PLAINER
from training.data.tools import crowd, make_tool, subject
from training.data.ways import ways
from training.data.wild import put
from training.data.world import World

_FACTS = templates(
    [
        "The {label} is {v}.",
        "{Label}: {v}.",
        "Its {label} is {v}.",
        "It has {v} as {label}.",
        "As {label} we have {v}.",
        "{v} is the {label}.",
        "The {label} was given as {v}.",
        "We know the {label}: {v}.",
        "The {noun}'s {label} is {v}.",
        "[Our|My|Their|This] {label} is {v}.",
        "{label}: {v}",
        "And the {label}? {v}.",
        "The {label} [will|must|should] be {v}.",
        "They gave {v} as the {label}.",
        "{v} is [its|their|our] {label}.",
        "Note the {label}, {v}.",
        "The {label} turned out to be {v}.",
        "[Somebody|Somebody else|A colleague] said the {label} was {v}.",
        "We chose {v} as {label}.",
        "{Label} - {v}.",
        "{Label} = {v}.",
        "With {v} as the {label}.",
        "What about the {label}? It is {v}.",
        "{noun} {label}: {v}.",
        "Regarding {label}: {v}.",
        "As for the {label}, [take|it is|use] {v}.",
        "On the {label} line [stands|is] {v}.",
        "By {label} we mean {v}.",
        "In place of the {label} [put|I see] {v}.",
        "At {label} [there is|I see] {v}.",
        "To the {label} belongs {v}.",
        "[Next to|Beside|Behind|After] {label}[,| there is| I read] {v}.",
        "With the {label} [comes|belongs] {v}.",
        "Into the {label} [box|field] we put {v}.",
        "{v} as {label}.",
        "{v} serves as the {label}.",
        "{v} stands for the {label}.",
        "{v}, that is the {label}.",
        "{v} belongs in the {label} [field|box|column].",
        "[Put|Write] {v} [down |]as {label}.",
        "{v} [would|should|must] be the {label}.",
        "{v} is what we have as {label}.",
        "{v} is [named|mentioned] as [its|the] {label}.",
        "{v}: that is the {label}.",
        "{v} makes the {label}.",
        "I see {v} in the {label} [line|column|part].",
        "[Use|Take|Keep] {v} as [the|its] {label}.",
    ],
    held_out=["For {label}, they wrote {v}.", "{v} was entered as {label}.", "Under {label} it says {v}."],
    later={PLAINER: ways("facts"), FULLER: ways("facts, more")},
)
_FACT_FORMS = (
    "~{label} ~{v}.",
    "~{label} ~{v}.",
    "~{noun} ~{label} ~{v}.",
    "~{v} ~{label}.",
    "{v} ^ {label}.",
    "{v} % ^ {label}.",
    "{v} % ~^ {label}.",
    "~{v} ^ {noun} {label}.",
    "^ {label} ~{v}.",
    "^ {label} ~{v}.",
    "^ {label}, ~{v}.",
    "^ {noun} {label} ~{v}.",
)
_ASK_FORMS = ("~{noun} ~: {text}", "{text}\n~{noun} ~", "~{text}")
_ASKS = templates(
    [
        "{text}",
        "Extract the {noun} from this text: {text}",
        "{text}\n\nFill in the {noun}.",
        "Read this and fill in the form.\n{text}",
        "Here is a {noun}. {text}",
        "Text:\n{text}",
        "Get the data of the {noun}: {text}",
        "{text}\n\nMake [a|one] {noun} of this.",
        "Put this into the {noun} form: {text}",
        "{text} Give me the fields.",
        "What does this say about the {noun}? {text}",
        "Parse: {text}",
        "Note down the {noun}. {text}",
        "[Hi|Hello|Good morning]. {text} [Thanks|Best regards|Cheers].",
        "From a mail: {text}",
        "{text}\nStore this {noun}.",
        "Record the {noun}: {text}",
        "Data:\n{text}\nEnd of data.",
        "I need [this|it] as {noun}: {text}",
        "Fill it in. {text}",
    ],
    held_out=["Turn this into a {noun} record: {text}", "{text}\nNow give me the structured {noun}."],
    later={PLAINER: ways("schema asks"), FULLER: ways("schema asks, more")},
)
_SCHEMA_NAMES = split(
    "record, data, info, form, schema, entry, details", held_out="profile card, sheet, dossier, extract"
)

_OF_A_CLASS = 0.7  # of schemas are as those of classes are written

_MADE = templates(
    [
        "[Write|Make up|Give me] [a|one] {noun} about {topic}.",
        "I want a {noun} about {topic}.",
        "A {noun} on {topic}, please.",
    ],
    held_out=["Compose a {noun} dealing with {topic}."],
)
PARTS = split(
    """opening:Once there was something about {topic}., title:About {topic}, question:What do you know about {topic}?,
    summary:This is about {topic}., ending:And that was all about {topic}., first line:Here comes {topic}.,
    idea:Something with {topic}, answer:It is all about {topic}., moral:Never forget {topic}.,
    hook:Have you heard of {topic}?""",
    held_out="""tagline:Always {topic}!, teaser:Soon more about {topic}., kicker:All about {topic},
    closing:No more of {topic}.""",
)


def as_call(w: World) -> Conversation:
    """The schema is a tool, as ``with_structured_output`` makes it."""
    noun, fields = _form(w)
    values, text = _paragraph(w, noun, fields)
    tool = Tool(
        _name(w, noun), "" if w.chance(0.4) else f"{noun.capitalize()} {w.pick(_SCHEMA_NAMES)}.", object_schema(fields)
    )
    turns = _call(tool, values, text)
    beside = [] if w.chance(0.8) else crowd(w, [make_tool(w)], most=2)
    tools = (tool, *(each.tool for each in beside))
    asides = tuple(_call(tool, *_paragraph(w, noun, fields)) for _ in range(_more(w)))
    return Conversation("schema", turns, tools, tags=("as call",), asides=asides, kinds=kinds_of(fields))


def _call(tool: Tool, values: dict[str, Value], text: str) -> tuple[User | Model, ...]:
    arguments = {name: each.json for name, each in values.items()}
    return User(text), Model((Calls((Call(tool.name, arguments, "ok"),)),))


def as_json(w: World) -> Conversation:
    """The schema stands in the system turn, and the answer is JSON."""
    noun, fields = _form(w)
    values, text = _paragraph(w, noun, fields)
    schema = object_schema(fields) | {"title": _name(w, noun)}
    if w.like_people(_OF_A_CLASS):
        schema = of_a_class(object_schema(fields), _name(w, noun), w.one(["", f"{noun.capitalize()}."]))
    system = (
        instruction(schema)
        if w.chance(0.7)
        else w.one(["Be exact.", "You are a helpful assistant."]) + "\n\n" + instruction(schema)
    )
    turns = _answer(fields, values, text)
    asides = tuple(_answer(fields, *_paragraph(w, noun, fields)) for _ in range(_more(w)))
    return Conversation("schema", turns, system=system, tags=("as JSON",), asides=asides, kinds=kinds_of(fields))


def _answer(fields: list[Field], values: dict[str, Value], text: str) -> tuple[User | Model, ...]:
    answer = json.dumps(
        {each.name: values[each.name].json for each in fields if each.name in values}, ensure_ascii=False
    )
    return User(text), Model((Say(answer, (answer,), exact=True),))


def _more(w: World) -> int:
    """Paragraphs to learn from, for the same schema."""
    return w.one((0, 1, 2, 4)) if w.side is Side.TRAIN else 0


def make_up(w: World) -> Conversation:
    """There is no paragraph: the texts have to be made up."""
    noun, topic = subject(w), draw.topic(w)
    properties: dict[str, Json] = {}
    arguments: dict[str, Json] = {}
    for part in w.some(PARTS, w.rng.randint(1, 3)):
        label, _, text = part.partition(":")
        name = draw.label(tuple(label.split()), w)
        properties[name] = {"type": "string", "description": w.one([f"{label} of the {noun}", f"the {label}"])}
        arguments[name] = w.fill(text, topic=topic)
    tool = Tool(_name(w, noun), "", {"type": "object", "properties": properties, "required": list[Json](properties)})
    calls = Calls((Call(tool.name, arguments, "ok"),))
    return Conversation("made up", (User(w.say(_MADE, noun=noun, topic=topic)), Model((calls,))), (tool,))


def instruction(schema: dict[str, Json]) -> str:
    """What the system turn says when the answer has to be JSON of a schema."""
    return "Answer in JSON of this schema:\n" + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _form(w: World) -> tuple[str, list[Field]]:
    noun = subject(w)
    taken: set[str] = set()
    return noun, [field(w, noun, "use", taken) for _ in range(w.rng.randint(2, 2 + round(4 * w.ease)))]


def _paragraph(w: World, noun: str, fields: list[Field]) -> tuple[dict[str, Value], str]:
    values = {each.name: each.draw(w) for each in fields if each.required or w.chance(0.5)}
    told = []
    for each in fields:
        if each.name not in values:
            continue
        what = values[each.name]
        if each.said is not None:
            told.append(each.said(w, what) + ".")
        else:
            said = put(w, _FACTS, _FACT_FORMS, label=each.label, Label=each.label.capitalize(), v=what.text, noun=noun)
            told.append(said)
    told += [context(w) for _ in range(w.rng.randint(0, 2))]
    w.rng.shuffle(told)
    return values, asked_for(w, " ".join(told), noun)


def asked_for(w: World, text: str, noun: str) -> str:
    """A request to read this out of a text."""
    return put(w, _ASKS, _ASK_FORMS, text=text, noun=noun)


def _name(w: World, noun: str) -> str:
    words = noun.split() if w.chance(0.7) else [*noun.split(), *w.pick(_SCHEMA_NAMES).split()]
    return "".join(word.capitalize() for word in words) if w.chance(0.75) else "_".join(words)
