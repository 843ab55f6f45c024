"""Work that agents give at once, or hold to a form: several conversations in a step, and an object under a grammar.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.running.serve import Answer

AT_ONCE = (2, 4, 8)  # conversations
BEHIND, EACH = 64, 32  # tokens of each one's prompt, and tokens that each gets
OBJECT = 300  # tokens under the grammar
SCHEMA: dict[str, Any] = {
    "type": "array",
    "minItems": 60,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer"},
            "city": {"type": "string", "maxLength": 20},
            "member": {"type": "boolean"},
        },
        "required": ["name", "age", "city", "member"],
        "additionalProperties": False,
    },
}
"""More than ``OBJECT`` tokens fit: an engine ends where the tokens do."""
SCHEMA_TEXT = json.dumps(SCHEMA)


def prompts_of(text: Sequence[int], number: int, count: int) -> list[list[int]]:
    """Return prompts for so many conversations, of which no two begin alike. ``number``: another one gives others."""
    rest = text[1:]
    starts = [(101 * (8 * number + each)) % (len(rest) - BEHIND) for each in range(count)]
    return [[text[0], *rest[start : start + BEHIND - 1]] for start in starts]


def time_together(
    decode: Callable[[list[list[int]], int], list[list[int]]], number: int, text: Sequence[int]
) -> Answer:
    """Seconds for several answers at once, their prompts included, by how many.

    ``decode`` gives each prompt's answer of so many tokens.
    """
    found: dict[str, float] = {}
    for turn, count in enumerate(AT_ONCE):
        prompts = prompts_of(text, len(AT_ONCE) * number + turn, count)
        began = time.perf_counter()
        answers = decode(prompts, EACH)
        found[str(count)] = time.perf_counter() - began
        if [len(answer) for answer in answers] != [EACH] * count:
            raise RuntimeError(f"Expected {count} answers of {EACH} tokens, found {list(map(len, answers))}.")
    return found


def time_object(answer: Callable[[list[int], int], int], number: int, text: Sequence[int]) -> float:
    """Seconds of a token of an answer that keeps to ``SCHEMA``. ``answer`` gives how many tokens there were."""
    (prompt,) = prompts_of(text, 1000 + number, 1)
    began = time.perf_counter()
    count = answer(prompt, OBJECT)
    took = time.perf_counter() - began
    if count != OBJECT:
        raise RuntimeError(f"Expected {OBJECT} tokens under the grammar, found {count}.")
    return took / OBJECT
