"""What users say who want a tool called, and the arguments that are right."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from training.data import draw
from training.data.conversation import Json
from training.data.fields import Field, keyed, mention
from training.data.kinds import Value
from training.data.scenario import told
from training.data.side import Side, split, templates
from training.data.template import slots_of
from training.data.tools import MadeTool, article
from training.data.wild import put
from training.data.words import things
from training.data.world import World

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
        "{Verb} {a} {noun}. [Details|The details|Data|Here is the rest]: {mentions}.",
        "{mentions} - {verb} {a} {noun} [please|for me|like that].",
        "[Could|Can|Will] [anybody|anyone|one of you] {verb} {a} {noun} {mentions}?",
        "Help me {verb} {a} {noun} {mentions}{close}",
        "[To do|Task|Next step|Job|Order]: {verb} {a} {noun} {mentions}",
        "[Try|Remember|Don't forget] to {verb} the {noun} {mentions}{close}",
        "I was [asked|told] to {verb} {a} {noun} {mentions}.",
        "It would be [nice|great|good|best] to {verb} {a} {noun} {mentions}.",
        "Why don't you {verb} {a} {noun} {mentions}?",
        "Is it possible to {verb} {a} {noun} {mentions}?",
        "{Verb} {a} {noun} {mentions} and tell me [how it went|what comes out|when it is done].",
        "{context} [Please|Therefore|Now|Then] {verb} {a} {noun} {mentions}{close}",
        "{Verb} {a} {noun} {mentions}. {context}",
        "There is {a} {noun} to {verb} {mentions}{close}",
        "[They|We|People] want to {verb} {a} {noun} {mentions}.",
        "{a} {noun}, [please|quick|now]: {verb} it {mentions}",
        "If [possible|you can|it is no trouble], {verb} {a} {noun} {mentions}{close}",
        "[Hi|Hello|Hey|Dear assistant], {verb} {a} {noun} {mentions}{close}",
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
        "Find out what the {noun} is {mentions}.",
        "What about the {noun} {mentions}?",
        "I need [to know |]the {noun} {mentions}.",
        "Show me the {noun} {mentions}{close}",
        "What {noun} do we have {mentions}?",
        "How does the {noun} look {mentions}?",
        "[I'm curious|One question|Quick question]: what is the {noun} {mentions}?",
        "Has anyone seen the {noun} {mentions}?",
        "[So|And|Now,] what is the {noun} {mentions}[|, please|, do you know]?",
        "Let me know the {noun} {mentions}{close}",
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
        "{Verb} {a} {noun} with these [details|values|data]:\n{lines}",
        "{A} {noun} to {verb}:\n{lines}",
        "I have to {verb} the {noun}.\n{lines}\n[Thanks.|Thank you!|That is all.]",
        "{lines}\n{Verb} the {noun}{close}",
        "{context} {Verb} {a} {noun}.\n\n{lines}",
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
        "{tool}({list})",
        "{tool}: {pairs}",
        "Try {tool} with {pairs}{close}",
        "Start {tool}, {pairs}.",
        "Could you run {tool} [on|for|with] {list}?",
        "Give {list} to {tool}.",
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
        "[Please |]{verb} the {noun} [again|once|today|right away|immediately|at once].",
        "{context} {Verb} {a} {noun}{close}",
        "I [want|need|have|would like] to {verb} {a} {noun}{close}",
        "There is {a} {noun} to {verb}.",
        "[Can|Could] we {verb} {a} {noun}[| now| today]?",
        "[Try|Remember] to {verb} the {noun}{close}",
        "{noun}: {verb}[| it| now]",
        "My boss wants me to {verb} {a} {noun}.",
        "{tool}",
        "[Maybe|Perhaps] {verb} {a} {noun}[?|.|]",
        "[Somebody|We|They|I] must {verb} the {noun}{close}",
        "The {noun}: {verb} it, [please|thanks|will you].",
        "The {noun} is [waiting|next|ready|due]. {Verb} it.",
        "[Good|Fine|Ok|Great], {verb} the {noun}{close}",
        "[All|What] I want is to {verb} {a} {noun}.",
        "We should {verb} the {noun} [first|again|soon|too]{close}",
        "Off you go, {verb} {a} {noun}[.|!]",
        "{Verb}! {A} {noun}!",
        "[How about|What about] {a} {noun} to {verb}?",
        "[Simply|Only] {verb} {a} {noun}, [nothing else|no more|that is all].",
        "It is [late|early|Monday|your turn], {verb} the {noun}[!|.|]",
        "[Let me|Let us|Let them] {verb} {a} {noun}[.|!|]",
        "[Start|Execute|Trigger|Fire] {tool}[.| now.|()]",
        "I [wait|hope] for {tool}[()|].",
    ],
    held_out=["Time to {verb} the {noun}!", "Just {verb} {a} {noun} already.", "Do a {tool}() for me."],
)

_REQUEST_FORMS = ("~{verb} ~{noun} ~{mentions}. ~", "~{noun} ~{verb} ~{mentions}, ~", "{mentions}. ~{verb} ~{noun} ~")
_QUESTION_FORMS = ("~{noun} ~{mentions}, ~", "~{noun} ~{mentions}?", "{mentions}. ~{noun} ~")
_LISTED_FORMS = ("~{verb} ~{noun} ~\n{lines}", "{lines}\n~{verb} ~{noun} ~")
_BY_NAME_FORMS = ("~{tool}({list}) ~", "~{tool} ~{pairs}, ~", "~{tool} ~{list}")
_BARE_FORMS = ("~{verb} ~{noun} ~", "~{noun} ~{verb} ~", "~{tool} ~", "~{tool}() ~")

_OPENERS = split(
    "Please, Could you, Can you, Would you, I need you to, Hey can you, Kindly, Now, Next, Quickly, Then, Ok so",
    held_out="Be so kind and, Might you, You should, Right then",
)

_ENDS = (".", "", "?", "!", " please.", ", thanks.")
_CLOSERS = (
    " now.",
    " today please.",
    " for me.",
    " right away.",
    ", ok?",
    ", as usual.",
    " - thank you!",
    " - it is urgent.",
    ", if you can.",
    " as soon as you can.",
    ". Thank you!",
    " when you have a minute.",
    ", quick!",
    " again.",
    ", and nothing else.",
    " - I am waiting.",
    ". That is all.",
    " once more.",
    " like last time.",
    ", it is for work.",
)

_REMARKS = (
    "Don't guess.",
    "It has to be right.",
    "There is a tool for that.",
    "Do not answer from memory.",
    "I can't do it myself.",
    "Nothing else will do.",
    "Please be exact.",
    "You know how.",
    "You have what you need for it.",
    "It is important.",
    "We need to know.",
    "Only a tool can do that.",
    "You should have a tool for it.",
    "This must not go wrong.",
    "I'll wait.",
    "You have to look it up.",
    "I trust you.",
    "That would help me.",
    "Take the tool that fits.",
    "One of the tools can do it.",
    "Let a tool do it.",
    "Better ask the tool.",
    "Please work with the tools.",
    "Call it once.",
    "That is all I want.",
    "The tool knows.",
)
"""What asks for nothing more: a second sentence is not always a second request."""

_HAILS = ("Hey, ", "Hi, ", "Hello! ", "ok, ", "Please, ", "Quick one: ", "So, ", "hey ", "um, ", "Alright, ", "Now ")

_REMARKED, _BARE_REMARKED = 0.15, 0.5  # where there is nothing to say but the request itself, half

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
class Request:
    """What a user asks of a tool, and the arguments that are right."""

    text: str
    arguments: dict[str, Json]
    values: dict[str, Value]


def choose_values(w: World, made: MadeTool) -> dict[str, Value]:
    """Values for the required fields, and for some of the others."""
    return {each.name: each.draw(w) for each in made.fields if each.required or w.chance(0.4)}


def request(w: World, made: MadeTool, values: dict[str, Value] | None = None) -> Request:
    """What a user says who wants this tool called."""
    if made.asks:
        return _written(w, made)
    values = choose_values(w, made) if values is None else values
    arguments = {name: each.json for name, each in values.items()}
    text = _said(w, made, values).strip()
    if w.side is Side.TRAIN and w.chance(_REMARKED if values else _BARE_REMARKED):
        text = f"{text}{'' if text[-1] in '.?!' else '.'} {w.one(_REMARKS)}"
    return Request(text, arguments, values)


def unfinished(w: World, made: MadeTool, values: dict[str, Value] | None = None) -> Request:
    """The same, without the mark at its end: something follows. No value loses its own."""
    while True:
        asked = request(w, made, values)
        text = asked.text.rstrip(".?! ")
        if all(
            value.text.casefold() in text.casefold() for value in asked.values.values() if isinstance(value.json, str)
        ):
            return Request(text, asked.arguments, asked.values)


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
        if _asks(w, made):
            return _capital(w, put(w, _QUESTIONS, _QUESTION_FORMS, mentions="", **slots))
        return _capital(w, put(w, _BARE, _BARE_FORMS, **slots))
    noun = made.noun
    first = next((each for each in fields if each.before and (each.hinted or len(fields) == 1)), None)
    if first is not None and w.chance(0.25):
        noun = f"{values[first.name].text} {noun}"
        fields.remove(first)
    slots = _slots(w, made, noun)
    form = w.rng.random()
    if noun == made.noun and form < 0.12:
        listed = _arguments(w, fields, values)
        return put(w, _BY_NAME, _BY_NAME_FORMS, pairs=_pairs(w, fields, values), list=listed, **slots)
    if form < 0.20 and len(fields) > 1:
        lines = "\n".join(f"{w.one(['- ', '', '* '])}{each.label}: {values[each.name].text}" for each in fields)
        return put(w, _LISTED, _LISTED_FORMS, lines=lines, **slots)
    alike = Counter(each.typed for each in made.fields)
    mentions = [
        mention(w, each, values[each.name], alone=len(fields) == 1, unlike=alike[each.typed] == 1) for each in fields
    ]
    shown = w.one([" ", ", ", " and "] if len(mentions) < 3 else [" ", ", "]).join(mentions)
    if _asks(w, made):
        return _capital(w, put(w, _QUESTIONS, _QUESTION_FORMS, mentions=shown, **slots))
    return _capital(w, put(w, _REQUESTS, _REQUEST_FORMS, mentions=shown, **slots))


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
    if said[0].isalpha() and w.chance(0.2):
        said = said[0].lower() + said[1:]
    if said[-1] in ".?" and w.chance(0.2):
        said = said[:-1]
    if w.chance(0.1):
        said = f"{said}{'' if said[-1] in '.?!' else '.'} {w.one(_REMARKS)}"
    elif w.chance(0.1):
        said = f"{context(w)} {said}"
    elif said[0].isalpha() and w.chance(0.1):
        said = f"{w.one(_HAILS)}{said[0].lower() if said[1:2] != ' ' else said[0]}{said[1:]}"
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
        "open": w.one(["", "", "", w.pick(_OPENERS) + " "]),
        "close": w.one(_CLOSERS) if w.side is Side.TRAIN and w.chance(0.4) else w.one(_ENDS),
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
