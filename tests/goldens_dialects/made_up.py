"""Conversations, schemas and values made up from a seed, full of what formats stumble over."""

from __future__ import annotations

import random
from typing import Any

from tests.goldens_dialects.corpus import Case, Said, called, gave, said, system, user

WORDS = [
    *(
        "a", "B", "city", "title of it", "é", "空", "👩‍🚀", "name", "value", "0", "z_1", "-", "null", "true", "1e5",
        "007",
    ),
    *('<|"|>', "<escape>", "<turn|>", "<end_of_turn>", "<|channel>", "<channel|>", "<tool_call|>", "<|tool_response>"),
    *("{x}", "[1]", ":", ",", "}", "]", "{", "[", "\n", "  ", "\t", "\\", '"', "'", "```", "```tool_call\n", "\u2028"),
]  # fmt: skip
KEYS = ["a", "B", "b", "city", "Zip code", "é", "_x", "x-y", "a.b", "items1", "Name", "空"]
ODD_KEYS = [
    "", " ", "a:b", "{", "}", ",", "x,y:1", '"', '"q"', "[0]", " a ", "\n", '<|"|>', "<escape>", "a\nb", "\\",
    "null",
]  # fmt: skip
TOOLS = ["f", "get_it", "天気", "a-b"]


def text(r: random.Random, most: int = 5) -> str:
    return "".join(r.choice(WORDS) for _ in range(r.randrange(most + 1)))


def value(r: random.Random, keys: list[str], depth: int = 0) -> Any:
    match r.randrange(10 if depth < 4 else 7):
        case 0:
            return None
        case 1:
            return r.random() < 0.5
        case 2:
            return r.randrange(-(10 ** r.randrange(1, 25)), 10 ** r.randrange(1, 25))
        case 3:
            return r.choice([0.0, -0.0, -1.5, 1e-9, 3e30, 2.0, 1e21, 5e-324, r.random(), r.uniform(-1e6, 1e6)])
        case 4 | 5 | 6:
            return text(r)
        case 7:
            return [value(r, keys, depth + 1) for _ in range(r.randrange(4))]
        case _:
            return members(r, keys, depth + 1)


def members(r: random.Random, keys: list[str], depth: int = 0) -> dict[str, Any]:
    return {key: value(r, keys, depth) for key in r.sample(keys, r.randrange(5))}


def schema(r: random.Random, depth: int = 0) -> Said:
    """One in the language of the published templates."""
    made: Said = {
        "type": r.choice(["string", "integer", "number", "boolean", *(["array", "object"] * (depth < 3)), "STRING"])
    }
    kind = made["type"].lower()
    if r.random() < 0.6:
        made["description"] = text(r)
    if r.random() < 0.3:
        made["nullable"] = r.random() < 0.7
    if kind == "string" and r.random() < 0.4:
        made["enum"] = [text(r) for _ in range(r.randrange(1, 3))]
    if kind == "array" and r.random() < 0.8:
        made["items"] = schema(r, depth + 1)
        for keyword in r.sample(["minimum", "x-more", "default"], r.randrange(3)):
            made["items"][keyword] = value(r, KEYS, 2)
    if kind == "object":
        if r.random() < 0.7:
            names = r.sample([*KEYS, "type", "description", "required"], r.randrange(4))
            made["properties"] = {name: schema(r, depth + 1) for name in names}
        elif r.random() < 0.5:
            made["additionalProperties"] = schema(r, depth + 1)
        if r.random() < 0.5:
            made["required"] = r.sample(KEYS, r.randrange(3))
    return made


def tools(r: random.Random) -> list[Said]:
    made = []
    for name in r.sample(TOOLS, r.choice([0, 0, 1, 2])):
        parameters: Said = {}
        if r.random() < 0.9:
            names = r.sample([*KEYS, "type"], r.randrange(4))
            parameters = {"type": "object", "properties": {each: schema(r) for each in names}}
            if r.random() < 0.5:
                parameters["required"] = r.sample(KEYS, 2)
        made.append({"name": name, "description": text(r), "parameters": parameters})
    return made


def case(seed: int, name: str) -> Case:
    """A conversation that the published template of this format renders as this package does."""
    r = random.Random(f"{seed}/{name}")
    options = {"generation_prompt": r.random() < 0.7}
    if name in {"gemma2", "gemma3"}:
        parts = 1 if name == "gemma2" else 3
        turns = [(user, said)[n % 2](*texts(r, parts)) for n in range(r.randrange(1, 5))]
        return Case((name,), [*([system(text(r))] if parts > 1 and r.random() < 0.5 else []), *turns], options=options)
    native4 = name != "function_gemma"
    if native4:
        options |= {"thinking": r.random() < 0.4, "keep_thoughts": r.random() < 0.3, "text_after_calls": True}
    messages = [system(*texts(r))] if r.random() < 0.5 else []
    for step in range(r.randrange(1, 6)):
        match r.randrange(5):
            case 0 | 1:
                messages.append(user(*texts(r)))
            case 2:
                messages.append(said(*texts(r), thinking=text(r) if native4 and r.random() < 0.4 else ""))
            case 3 if native4:
                messages.append(system(*texts(r)) if r.random() < 0.2 else user(*texts(r)))
            case _:
                messages += _calls(r, step, answered=not native4 or r.random() < 0.8, thinks=native4)
                if not native4:  # behind results its template takes whoever speaks for the model
                    messages.append(said(*texts(r)))
    return Case((name,), messages or [user("x")], tools(r), options)


def texts(r: random.Random, most: int = 3) -> list[str]:
    return [text(r) for _ in range(r.randrange(1, most + 1))]


def _calls(r: random.Random, step: int, *, answered: bool, thinks: bool) -> list[Said]:
    calls = [(r.choice(TOOLS), members(r, KEYS), f"{step}/{n}") for n in range(r.randrange(1, 4))]
    made = [
        called(
            *calls, text=text(r) if r.random() < 0.4 else "", thinking=text(r) if thinks and r.random() < 0.4 else ""
        )
    ]
    if answered:
        r.shuffle(calls)
        plain = r.random() < 0.5
        for _, _, call_id in calls:
            given = text(r) if plain else r.choice([value(r, KEYS), members(r, KEYS)])
            made.append(gave(given, call_id, error=not plain and r.random() < 0.2))
    return made
