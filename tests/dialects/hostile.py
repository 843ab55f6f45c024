"""Schemas that mean harm, by chance: patterns that blow up, and everything that multiplies."""

from __future__ import annotations

import random
from typing import Any


def pattern(rng: random.Random, depth: int = 3) -> str:
    """A pattern whose automaton is large, now and then."""
    atoms = ["a", "b", ".", r"\d", r"\w", r"\S", "[a-m]", "[^a]", r"[\s\S]", "é", "(?:a|ab)", "(a+)+"]
    atoms.append(
        "[" + "".join(f"{chr(0x4E00 + 3 * i)}-{chr(0x4E01 + 3 * i)}" for i in range(rng.randint(1, 300))) + "]"
    )
    parts = []
    for _ in range(rng.randint(1, 4)):
        part = rng.choice(atoms) if not depth or rng.random() < 0.5 else f"(?:{pattern(rng, depth - 1)})"
        if depth and rng.random() < 0.2:
            part = f"(?:{part}|{pattern(rng, depth - 1)})"
        low, more = rng.choice([0, 1, 2, 30, 300, 1000]), rng.choice([0, 1, 9, 100, 700])
        counts = ["", "*", "+", "?", f"{{{low}}}", f"{{{low},}}", f"{{{low},{min(1000, low + more)}}}"]
        parts.append(part + rng.choice(counts))
    return "".join(parts)


def schema(rng: random.Random, depth: int = 4) -> Any:
    """One that is made of such."""
    kinds = [_string, _enum, _number, _pile, _members, _list, _union, _references, _chain]
    return rng.choice(kinds if depth else kinds[:3])(rng, depth)


def _string(rng: random.Random, depth: int) -> Any:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(rng.choice([0, 1, 1, 1, 5])):
        found.setdefault("allOf", []).append(
            {"pattern": f"{rng.choice(['', '^'])}{pattern(rng)}{rng.choice(['', '$'])}"}
        )
    if rng.random() < 0.5:
        found["maxLength"] = 10 ** rng.randint(0, 6)
    if rng.random() < 0.3:
        found["minLength"] = 10 ** rng.randint(0, 4)
    return found | rng.choice([{}, {}, {"format": rng.choice(["uri", "date", "ipv6", "idn-email"])}])


def _enum(rng: random.Random, depth: int) -> Any:
    count = rng.choice([1, 30, 300, 1000])
    values = [rng.choice(["a", "b", "ab\n", "7"]) * rng.choice([1, 5, 90]) + str(i) for i in range(count)]
    return {"enum": values} | rng.choice([{}, {"pattern": pattern(rng), "type": "string"}, {"maxLength": 3}])


def _number(rng: random.Random, depth: int) -> Any:
    found: dict[str, Any] = {"type": rng.choice(["integer", "number"])}
    for word in ("minimum", "exclusiveMaximum", "multipleOf"):
        if rng.random() < 0.4:
            found[word] = rng.choice([1, 3, 997, 10**9 + 7, 2**60, 0.1, 1e-9, 1.7e300, 3.3333333333333335, 1e-300])
    return found


def _pile(rng: random.Random, depth: int) -> Any:
    return {"type": "object", "properties": {f"p{i}": _string(rng, 0) for i in range(rng.choice([3, 30, 300]))}}


def _members(rng: random.Random, depth: int) -> Any:
    inner = schema(rng, depth - 1)
    names = [f"p{i}" for i in range(rng.choice([1, 3, 40, 700, 1000]))]
    found: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(names, inner)}
    found["required"] = rng.sample(names, rng.choice([0, 1, len(names)]))
    others = (
        ("minProperties", rng.choice([1, 2, 30, 10**6])),
        ("maxProperties", rng.choice([1, 2, 30, 10**6])),
        ("additionalProperties", inner),
        ("patternProperties", {pattern(rng): inner for _ in range(rng.choice([1, 9]))}),
        ("propertyNames", {"pattern": pattern(rng), "maxLength": rng.choice([3, 300])}),
    )
    return found | {word: value for word, value in others if rng.random() < 0.2}


def _list(rng: random.Random, depth: int) -> Any:
    found: dict[str, Any] = {"type": "array", "items": schema(rng, depth - 1)}
    if rng.random() < 0.4:
        found["minItems"] = 10 ** rng.randint(0, 18)
    if rng.random() < 0.4:
        found["maxItems"] = 10 ** rng.randint(0, 18)
    if rng.random() < 0.3:
        found["prefixItems"] = [schema(rng, 0)] * rng.choice([1, 20, 300])
    return found | rng.choice([{}, {}, {"uniqueItems": True}])


def _union(rng: random.Random, depth: int) -> Any:
    word = rng.choice(["anyOf", "oneOf", "allOf"])
    options = [schema(rng, depth - 1) for _ in range(rng.choice([1, 2, 5]))]
    if rng.random() < 0.3:
        options = [{"enum": [f"v{i}"]} for i in range(1000)]
    return {word: options * rng.choice([1, 1, 20])} | rng.choice([{}, schema(rng, 0)])


def _references(rng: random.Random, depth: int) -> Any:
    """Each definition refers to the next one several times."""
    count = rng.choice([2, 12, 60])
    found: dict[str, Any] = {f"d{count}": schema(rng, 0)}
    for number in range(count):
        word = rng.choice(["properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties"])
        following: dict[str, Any] = {"$ref": f"#/$defs/d{number + rng.choice([1, 1, 1, 0])}"}
        inner: Any = following
        if word == "properties":
            inner = dict.fromkeys(["a", "b", "c", "d"], following)
        elif word.endswith("Of"):
            inner = [following] * rng.choice([2, 10])
        found[f"d{number}"] = {word: inner}
    return {"$ref": "#/$defs/d0", "$defs": found}


def _chain(rng: random.Random, depth: int) -> Any:
    """Unions that multiply each other."""
    parts = [[schema(rng, 0) for _ in range(rng.choice([2, 4]))] for _ in range(rng.choice([2, 8, 20]))]
    return {"allOf": [{rng.choice(["anyOf", "oneOf"]): part} for part in parts]}
