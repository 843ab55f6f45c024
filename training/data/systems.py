"""System lines that ask for nothing special, short and long."""

from __future__ import annotations

from training.data import draw
from training.data.side import split, templates
from training.data.words import things
from training.data.world import World

_ROLES = templates(
    [
        "You are a helpful assistant.",
        "You are {a} assistant of {firm}.",
        "You help people with {topic}.",
        "{firm} support.",
        "You are the {noun} agent of {firm}.",
        "Assist the user.",
        "You are an agent with tools.",
        "Use the tools to answer.",
    ],
    held_out=["You serve the customers of {firm}.", "An agent for {topic} speaks here.", "Tools are at your disposal."],
)
_ADJECTIVES = split("a friendly, a careful, a quick, a polite, the, a busy", held_out="a thoughtful, an attentive")
_RULES = templates(
    [
        "Be brief.",
        "Be polite.",
        "Never guess.",
        "Answer in English.",
        "Today is {date}.",
        "The time is {time}.",
        "The user lives in {place}.",
        "Do not talk about {topic}.",
        "Call a tool whenever one fits.",
        "Only use what the tools say.",
        "The office is in {place}.",
        "You were last updated on {date}.",
        "If a tool fails, try it once more.",
    ],
    held_out=["Stick to the facts.", "It is {time} in {place}.", "Our lines close on {date}.", "Avoid {topic}."],
)


def system_line(w: World) -> str:
    """Nothing, a sentence, or a paragraph."""
    form = w.rng.random()
    if form < 0.5:
        return ""
    rules = w.rng.randint(0, 1) if form < 0.8 else w.rng.randint(2, 2 + round(5 * w.ease))
    slots = {
        "a": w.pick(_ADJECTIVES),
        "firm": draw.company(w),
        "topic": draw.topic(w),
        "noun": w.pick(things.NOUNS),
        "date": draw.date(w),
        "time": draw.time(w),
        "place": draw.place(w),
    }
    lines = [w.say(_ROLES, **slots), *(w.say(_RULES, **slots) for _ in range(rules))]
    return w.one([" ", "\n", " "]).join(dict.fromkeys(lines))
