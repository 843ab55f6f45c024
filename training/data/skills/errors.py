"""A tool fails: put right what was wrong and call again, or say what happened."""

from __future__ import annotations

from collections.abc import Callable

from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, User
from training.data.further import with_tools
from training.data.requests import request
from training.data.results import result
from training.data.side import templates
from training.data.stages import FULLER
from training.data.tools import MadeTool, crowd, make_tool
from training.data.ways import ways
from training.data.wild import put
from training.data.world import World

_BUSY = templates(
    [
        "Error: timed out, try again",
        "The service is busy. Please retry.",
        "Error: temporary failure, try again",
        "503 try again later",
        "Error: connection lost, retry",
        "Too many requests, wait and retry",
        "Error: server not ready, try again",
        "Not available right now. Try once more.",
        "Timeout. [Try|Call|Ask] again.",
        "Error: the queue is full, retry",
        "Interrupted, please repeat the call",
        "Error: lock held, try again soon",
        "Network trouble. Retry.",
        "429 slow down and retry",
        "Gateway error, repeat",
        "Error: try again",
        "Temporarily down, call once more.",
    ],
    held_out=["Error: overloaded, please try again", "Hiccup in the line, retry"],
    later={FULLER: ways("busy")},
)
_WRONG = templates(
    [
        "Error: unknown {label} {bad}, did you mean {good}?",
        "No {label} {bad}. Did you mean {good}?",
        "Error: {label} {bad} was renamed to {good}",
        "Invalid {label} {bad}: use {good}",
        "Error: {label} must be {good}, not {bad}",
        "Error: no such {label}. Closest: {good}",
        "{label} {bad} unknown; known: {good}",
        "Error: {bad} is not a {label}, but {good} is",
        "Use {good} instead of {bad}",
        "Error: expected {good} as {label}, got {bad}",
        "Error: {bad} has moved to {good}",
        "Could not find {bad}. [Was|Is] it {good}?",
        "Misspelled {label}: {good}",
        "Error: {bad}: [meant|maybe|you mean] {good}",
    ],
    held_out=["Error: {label} {bad} is not listed, try {good}", "{bad}? Perhaps the {label} is {good}"],
    later={FULLER: ways("wrong")},
)
_WRONG_FORMS = (
    "Error: ~{label} ~{bad} ~{good}",
    "~{bad} ~? ~{label} ~{good}",
    "~no ~{label} {bad}, ~{good}",
    "Error: ~{bad}. ~{good}",
    "~not {bad} ~but ~{good}",
)
_FINAL = templates(
    [
        "Error: {noun} not found",
        "Permission denied for this {noun}",
        "Error: the {noun} is {word}",
        "Error {n}: {word}",
        "Error: you may not do this with the {noun}",
        "Failed: {word} {noun}",
        "Error: {word} {n}",
        "Forbidden: {noun}",
        "Error: cannot reach the {noun}",
        "No such {noun}: {word}",
        "Error: {noun} {word}",
        "Denied ({word})",
        "Error: quota of {noun} used up",
        "Aborted: {word} {n}",
    ],
    held_out=["Error: no access to the {noun}", "Rejected with reason {word}"],
    later={FULLER: ways("final")},
)
_GIVE_UP = templates(
    ["That did not work: {error}."],
    held_out=["It went wrong: {error}."],
)


def try_again(w: World) -> Conversation:
    """The same call once more."""
    return _alike(w, make_tool(w), _again, "try again")


def _again(w: World, made: MadeTool) -> list[User | Model]:
    asked, got = request(w, made), result(w, made)
    error = w.say(_BUSY)
    first, second = (Call(made.tool.name, asked.arguments, reply) for reply in (_shape(w, error), got.reply))
    turn = Model((Calls((first,)), Calls((second,)), Say(got.answer, got.facts)))
    return [User(asked.text), turn]


def put_right(w: World) -> Conversation:
    """The same call with what the tool suggests."""
    made = make_tool(w, count=w.rng.randint(1, 2), kinds=("person", "place", "code", "company", "word", "title"))
    return _alike(w, made, _mended, "put right")


def _mended(w: World, made: MadeTool) -> list[User | Model]:
    values = {each.name: each.draw(w) for each in made.fields}
    asked, got = request(w, made, values), result(w, made)
    wrong = w.one(made.fields)
    good = wrong.draw(w)
    slots = {"label": wrong.label, "bad": str(values[wrong.name].json), "good": str(good.json)}
    error = put(w, _WRONG, _WRONG_FORMS, **slots)
    first = Call(made.tool.name, asked.arguments, _shape(w, error))
    second = Call(made.tool.name, asked.arguments | {wrong.name: good.json}, got.reply)
    turn = Model((Calls((first,)), Calls((second,)), Say(got.answer, got.facts)))
    return [User(asked.text), turn]


def give_up(w: World) -> Conversation:
    """Nothing to be done about it: say what the tool said."""
    return _alike(w, make_tool(w), _reported, "give up")


def _reported(w: World, made: MadeTool) -> list[User | Model]:
    asked = request(w, made)
    error = w.say(_FINAL, noun=made.noun, word=w.made_up(), n=str(w.integer(400, 599)))
    first = Call(made.tool.name, asked.arguments, _shape(w, error))
    turn = Model(
        (Calls((first,)), Say(w.say(_GIVE_UP, error=error.removeprefix("Error: ")), (error.removeprefix("Error: "),)))
    )
    return [User(asked.text), turn]


def _alike(w: World, made: MadeTool, turns: Callable[[World, MadeTool], list[User | Model]], tag: str) -> Conversation:
    tools = crowd(w, [made], most=4)
    return with_tools(w, "tool error", turns(w, made), tools, (tag,), again=lambda: turns(w, made))


def _shape(w: World, error: str) -> dict[str, Json] | str:
    return error if w.chance(0.6) else {"error": error.removeprefix("Error: ")}
