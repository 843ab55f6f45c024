"""Numbers and strings that are as a schema asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from math import lcm, prod
from typing import Protocol

from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar import nodes
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Node, either
from langchain_gemma_jax.grammar.pattern_text import Pattern
from langchain_gemma_jax.grammar.schema import number_patterns
from langchain_gemma_jax.grammar.schema.formats import known
from langchain_gemma_jax.grammar.schema.schema_facts import Facts, Promises, UnpromisedError, UnreadableError
from langchain_gemma_jax.grammar.schema.writing import Asked, Writing
from langchain_gemma_jax.grammar.terminals import words

LONGEST = 10_000  # characters that a string must have
MOST_PLACES = 50_000  # in patterns and lengths that have to fit at once
MOST_REMAINDERS = 1000  # a reader of multiples is in so many states


class Checks(Promises, Protocol):
    """As much of a reader of schemas as numbers and strings need."""

    writing: Writing

    def check(self, node: Node, at: str) -> None:
        """See that some text fits, and that it does not cost too much to tell which.

        Raises:
            UnreadableError: none does, or it does.
        """


def string(reader: Checks, facts: Facts) -> Node | None:
    """Return the node of a string; None if there is none."""
    asked = asked_string(reader, facts)
    return None if asked is None else reader.writing.string(asked)


def asked_string(reader: Checks, facts: Facts) -> Asked | None:
    """Return what is asked of a string; None if that contradicts itself.

    Raises:
        SchemaError: it cannot be promised.
    """
    low, high = facts.length
    if high is not None and high < low:
        return None
    patterns = tuple(dict.fromkeys(facts.patterns))
    least = max([low, *(pattern.least for pattern in patterns)])
    if least > LONGEST:
        raise SchemaError(
            facts.at, f"a string of at least {least:,} characters: expected at most {LONGEST:,}. No model writes more"
        )
    return Asked((), low, high) if not patterns else _counted(reader, facts.at, patterns, low, high)


def _counted(reader: Checks, at: str, patterns: tuple[Pattern, ...], low: int, high: int | None) -> Asked:
    """Return patterns, and a length where they do not have it by themselves.

    To see whether several things fit at once takes about as long as their sizes multiplied. Where only a length is too
    much, a shorter one is asked for: of what is shorter, all is as it is asked as well.
    """
    size = prod(pattern.size for pattern in patterns)
    most = min((pattern.most for pattern in patterns if pattern.most is not None), default=None)
    if max(pattern.least for pattern in patterns) >= low:
        low = 0
    if high is not None:
        high = None if most is not None and most <= high else min(high, max(MOST_PLACES // size, low))
    counted = len(patterns) > 1 or low or high is not None
    if counted:
        check_places(at, patterns, max(1, low, high or 1))
    if counted or patterns[0] not in known():
        reader.check(words(patterns, low, high), at)
    return Asked(patterns, low, high)


def check_places(at: str, patterns: Sequence[Pattern], others: int) -> None:
    """See that patterns can be joined with each other, and with something else that has ``others`` places.

    Raises:
        UnreadableError: the patterns are too large.
    """
    if prod(pattern.size for pattern in patterns) * others > MOST_PLACES:
        raise UnreadableError(at, "its patterns are too large to be joined, with each other or with a length")


def number(reader: Checks, facts: Facts, *, whole: bool) -> Node | None:
    """Return the node of a number; None if there is none.

    Raises:
        SchemaError: it cannot be promised.
    """
    low, high = _bounds(facts)
    if low is not None and high is not None and (low > high or (low == high and (facts.above or facts.below))):
        return None
    if facts.steps:
        step = _least_common([*facts.steps, Decimal(1)] if whole else facts.steps)
        if step == 1 and not whole:
            return number(reader, facts, whole=True)
        if step != 1:
            try:
                return _multiples(reader, facts, step, low, high)
            except UnpromisedError as error:
                reader.cannot(error.at, error.problem)
    if whole:
        least = None if low is None else _whole_bound(low, facts.above, 1)
        most = None if high is None else _whole_bound(high, facts.below, -1)
        return number_patterns.whole(least, most)
    return number_patterns.decimal(low, high, above=facts.above, below=facts.below)


def _bounds(facts: Facts) -> tuple[Decimal | None, Decimal | None]:
    """Return a number's bounds, without those that no number reaches here anyway."""
    low, high = facts.low, facts.high
    for bound, beyond in ((low, 1), (high, -1)):
        if bound is not None and beyond * bound > 10**number_patterns.WHOLE_DIGITS * 10:
            raise SchemaError(facts.at, f"numbers beyond {bound:.3g} cannot be promised: they have too many digits")
    far = Decimal(10) ** (number_patterns.WHOLE_DIGITS + 1)
    return (None if low is not None and low < -far else low), (None if high is not None and high > far else high)


def _whole_bound(bound: Decimal, excluded: bool, inward: int) -> int:  # noqa: FBT001  one of three plain numbers
    if bound == bound.to_integral_value():
        return int(bound) + inward * excluded
    return int(bound.to_integral_value("ROUND_CEILING" if inward > 0 else "ROUND_FLOOR"))


def _least_common(numbers: Sequence[Decimal]) -> Decimal:
    """Return the least number that is a multiple of all."""
    places = max(map(_places, numbers))
    return Decimal(lcm(*(int(number.scaleb(places)) for number in numbers))).scaleb(-places)


def _places(number: Decimal) -> int:
    """Return how many digits a number has behind the point."""
    return max(0, -int(number.normalize().as_tuple().exponent))


def _multiples(reader: Checks, facts: Facts, step: Decimal, low: Decimal | None, high: Decimal | None) -> Node | None:
    """Return the node of multiples, which llguidance tells by their remainders. None: there are none.

    Raises:
        UnpromisedError: there are too many remainders, or digits.
    """
    far = Decimal(10) ** (number_patterns.DIGITS - _places(step)) - 1
    too_far = any(bound is not None and abs(bound) > far for bound in (low, high))
    if step.scaleb(_places(step)) > MOST_REMAINDERS or _places(step) >= number_patterns.DIGITS or too_far:
        raise UnpromisedError(facts.at, f"multipleOf {step}")
    found: list[Node] = []
    for places in range(_places(step) + 1):  # it wants all of a multiple's digits: 0.50 where it is one of 0.25
        each = _least_common([step, Decimal(10) ** -places])
        least, most = (-far if low is None else low) / each, (far if high is None else high) / each
        first, last = int(least.to_integral_value("ROUND_CEILING")), int(most.to_integral_value("ROUND_FLOOR"))
        first += facts.above and first == least
        last -= facts.below and last == most
        if first <= last:
            schema: dict[str, Json] = {"type": "number" if places else "integer", "multipleOf": _plain(each)}
            schema |= {"minimum": _plain(first * each), "maximum": _plain(last * each)}
            found.append(nodes.SchemaJson(json.dumps(schema), 1))
    try:
        for node in found:
            reader.check(node, facts.at)
    except UnreadableError:
        raise UnpromisedError(facts.at, f"multipleOf {step}") from None
    return either(*found) if found else None


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
