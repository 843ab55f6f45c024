"""Agents that speak: each has conversations in which it says much of what it said before, or nothing of it.

A base model continues them as it sees fit: examples in the prompt show it the form. The values of a second conversation
are others than those of the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Agent:
    """An agent: the head of its prompts, the turns of its conversations, and what ends an answer."""

    head: str
    conversations: tuple[tuple[str, ...], ...]  # of each, what is said before each answer
    stop: str
    max_tokens: int
    temperature: float = 0.0


def _call(email: str, city: str, item: str) -> str:
    arguments = {
        "customer": {"email": email, "city": city, "country": "Germany"},
        "item": {"name": item, "quantity": 1, "reason": "damaged"},
        "notify": True,
        "priority": "normal",
    }
    return json.dumps({"tool": "create_return", "arguments": arguments})


def _request(email: str, city: str, item: str) -> str:
    return f"User: The {item} is damaged. I am {email} and live in {city}.\nCall:"


def _record(name: str, born: str, work: str) -> str:
    return json.dumps(
        {"person": {"name": name, "born": born, "occupation": work}, "language": "en", "confidence": "high"}
    )


def _sentence(name: str, born: str, work: str) -> str:
    return f"Text: {name}, born in {born}, is a {work}.\nJSON:"


_ORDERS = [
    ("ada@example.org", "Bremen", "desk lamp"),
    ("ben@example.org", "Kiel", "shelf"),
    ("cleo@example.org", "Ulm", "kettle"),
    ("dora@example.org", "Jena", "chair"),
    ("emil@example.org", "Hof", "clock"),
    ("fay@example.org", "Trier", "carpet"),
    ("gus@example.org", "Mainz", "mirror"),
    ("hana@example.org", "Köln", "toaster"),
]
_PEOPLE = [
    ("Ada Brandt", "1951", "baker"),
    ("Ben Okoro", "1987", "pilot"),
    ("Cleo Marsh", "1990", "nurse"),
    ("Dora Lind", "1978", "painter"),
    ("Emil Roth", "1969", "teacher"),
    ("Fay Novak", "2001", "singer"),
    ("Gus Meyer", "1944", "farmer"),
    ("Hana Sato", "1983", "engineer"),
]
_OPENINGS = [
    "The old harbour was quiet in the morning, because",
    "Most people who learn to play the violin",
    "When the committee met for the second time, it",
    "A good soup begins with",
    "In the valley behind the mill there lived",
    "Trains were late that winter, and so",
]

AGENTS = {
    "tool calls": Agent(
        "Answer each user with one call.\n" + "".join(f"{_request(*order)} {_call(*order)}\n" for order in _ORDERS[:2]),
        (tuple(_request(*order) for order in _ORDERS[2:5]), tuple(_request(*order) for order in _ORDERS[5:8])),
        "\n",
        96,
    ),
    "JSON objects": Agent(
        "Describe each text as JSON.\n"
        + "".join(f"{_sentence(*person)} {_record(*person)}\n" for person in _PEOPLE[:2]),
        (tuple(_sentence(*person) for person in _PEOPLE[2:5]), tuple(_sentence(*person) for person in _PEOPLE[5:8])),
        "\n",
        72,
    ),
    # A small base model that is greedy says the same over and over, which chat does not.
    "plain chat": Agent("", (tuple(_OPENINGS[:3]), tuple(_OPENINGS[3:])), "\n\n\n\n", 96, temperature=1.0),
}
