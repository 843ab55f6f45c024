"""A second request in the same conversation, which says only what is new."""

from __future__ import annotations

from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.further import served, with_tools
from training.data.requests import request
from training.data.results import result
from training.data.side import templates
from training.data.skills.small_talk import exchange
from training.data.stages import FULLER
from training.data.tools import MadeTool, crowd, make_tool
from training.data.ways import ways
from training.data.wild import put
from training.data.world import World

_NEXT = templates(
    [
        "And for {v}?",
        "Now the same for {v}.",
        "What about {v}?",
        "And {v}?",
        "Do it for {v} too.",
        "{v}?",
        "Next: {v}",
        "{v} too.",
        "{v} as well[, please|].",
        "Once more for {v}.",
        "Again with {v}.",
        "Then {v}.",
        "Now {v}[, please|].",
        "Also for {v}.",
        "[Could|Can] you do {v} too?",
        "The same with {v}.",
        "{v} is the next one.",
        "And what about {v}?",
        "Repeat that for {v}.",
        "I need it for {v} too.",
        "Ok, and {v}?",
        "[Sorry|Actually], I meant {v}.",
        "Another one: {v}",
        "Continue with {v}.",
        "Same thing, {v}.",
    ],
    held_out=["How about {v} then?", "Likewise {v}, please."],
    later={FULLER: ways("follow up")},
)
_NEXT_FORMS = ("~{v}", "~{v}?", "~{v}, ~", "{v} ~", "~{v} ~?")


def same_again(w: World) -> Conversation:
    """The same tool with another value."""
    made = make_tool(w, count=1, kinds=("person", "place", "code", "company", "word", "title", "count"))
    tools = crowd(w, [made], most=4)
    return with_tools(w, "follow-up", _again(w, made), tools, ("same again",), again=lambda: _again(w, made))


def _again(w: World, made: MadeTool) -> list[User | Model]:
    first = request(w, made, {made.fields[0].name: made.fields[0].draw(w)})
    second = made.fields[0].draw(w)
    got, also = result(w, made), result(w, made)
    return [
        User(first.text),
        Model((Calls((Call(made.tool.name, first.arguments, got.reply),)), Say(got.answer, got.facts)), graded=False),
        User(put(w, _NEXT, _NEXT_FORMS, v=second.text)),
        Model(
            (
                Calls((Call(made.tool.name, {made.fields[0].name: second.json}, also.reply),)),
                Say(also.answer, also.facts),
            )
        ),
    ]


def something_else(w: World) -> Conversation:
    """Another request, with talk in between."""
    one = make_tool(w, count=w.rng.randint(0, 2))
    while (two := make_tool(w, count=w.rng.randint(1, 3))).noun == one.noun or two.tool.name == one.tool.name:
        pass
    turns: list[User | Model] = []
    for index, made in enumerate((one, two)):
        turns += served(w, made, graded=index == 1)
        if index == 0 and w.chance(0.5):
            talk, answer = exchange(w)
            turns += [User(talk), Model((answer,), graded=False)]
    return with_tools(w, "follow-up", turns, crowd(w, [one, two], most=5), ("something else",))
