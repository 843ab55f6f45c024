"""What a tool cannot do without was not said: ask for it, then call."""

from __future__ import annotations

from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.further import with_tools
from training.data.results import result
from training.data.side import templates
from training.data.tools import MadeTool, article, crowd, make_tool
from training.data.world import World

_VAGUE = templates(
    [
        "[Please |Can you |]{verb} {a} {noun}[.|?|]",
        "I want to {verb} {a} {noun}.",
        "{Verb} the {noun}[, please|].",
        "I need you to {verb} {a} {noun}[ for me|].",
        "{verb} {a} {noun}",
        "Let us {verb} {a} {noun} [now|today].",
        "[Could|Will|Can] you {verb} the {noun}?",
        "There is {a} {noun} to {verb}.",
        "I'd like to {verb} {a} {noun}.",
        "We must {verb} {a} {noun}.",
        "My {noun}: {verb} it.",
        "[Start|Go on], {verb} the {noun}.",
        "Help me {verb} {a} {noun}.",
        "{noun}, {verb}[!|]",
        "What about that {noun}? {Verb} it.",
        "Somebody wants to {verb} {a} {noun}.",
        "[Maybe|Perhaps] {verb} {a} {noun}[?|.|]",
        "[Somebody|We|They|I] must {verb} the {noun}[.|!|]",
        "The {noun} is [waiting|next|ready|due]. {Verb} it.",
        "[Good|Fine|Ok|Great], {verb} the {noun}.",
        "We should {verb} the {noun} [first|again|soon|too].",
        "Off you go, {verb} {a} {noun}[.|!]",
        "[How about|What about] {a} {noun} to {verb}?",
        "It is [late|early|Monday|your turn], {verb} the {noun}[!|.|]",
    ],
    held_out=["Time to {verb} {a} {noun}.", "Would you {verb} the {noun}?"],
)
_WHICH = templates(["What is the {label}?"], held_out=["Which {label}?"])
_THIS = templates(
    [
        "{v}",
        "It is {v}.",
        "{v}[, please|]",
        "The {label} is {v}.",
        "{label}: {v}",
        "Sorry, {v}.",
        "[I think|Oh,|Right:|Ok,] {v}",
        "[Let's say|Let it be|Make it|Use|Try|Put] {v}.",
        "Of course: {v}.",
        "{v} is the {label}.",
        "My {label} is {v}.",
        "[Ah|Well], it's {v}!",
        "Here: {v}",
        "The {label}: {v}",
        "[I mean|I meant] {v}.",
        "Set it to {v}.",
        "{v}, as always.",
    ],
    held_out=["That would be {v}.", "Take {v}."],
)

_KINDS = ("person", "place", "code", "company", "title", "count", "date")


def ask_back(w: World) -> Conversation:
    """The one argument that is required is missing at first."""
    made = make_tool(w, count=1, kinds=_KINDS)
    while not made.fields[0].required:
        made = make_tool(w, count=1, kinds=_KINDS)
    tools = crowd(w, [made], most=4)
    return with_tools(w, "ask back", _asked_back(w, made), tools, again=lambda: _asked_back(w, made))


def _asked_back(w: World, made: MadeTool) -> list[User | Model]:
    wanted = made.fields[0]
    word, what, got = w.one(made.verb.words), wanted.draw(w), result(w, made)
    vague = w.say(_VAGUE, verb=word, Verb=word.capitalize(), noun=made.noun, a=article(made.noun))
    call = Call(made.tool.name, {wanted.name: what.json}, got.reply)
    return [
        User(vague),
        Model((Say(w.say(_WHICH, label=wanted.label), (wanted.label,)),)),
        User(w.say(_THIS, label=wanted.label, v=what.text)),
        Model((Calls((call,)), Say(got.answer, got.facts))),
    ]
