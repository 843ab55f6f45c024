"""Numbers and strings of a schema."""

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

LONGEST = 10_000  # the largest minimum length of a string
MOST_PLACES = 50_000  # the product of the sizes of patterns and lengths that must fit at once
MOST_REMAINDERS = 1000  # the number of states of a matcher of multiples


class Checks(Promises, Protocol):
    """The part of ``SchemaReader`` that numbers and strings need."""

    writing: Writing

    def check(self, node: Node, at: str) -> None:
        """Check that some text fits a node, and that matching does not cost too much.

        Raises:
            UnreadableError: no text fits, or matching costs too much.
        """


def string(reader: Checks, facts: Facts) -> Node | None:
    """Return the node of a string; None if no string fits."""
    asked = asked_string(reader, facts)
    return None if asked is None else reader.writing.string(asked)


def asked_string(reader: Checks, facts: Facts) -> Asked | None:
    """Return the requirements on a string; None if they contradict each other.

    Raises:
        SchemaError: they cannot be promised.
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
    """Return the patterns, and limits on the length if the patterns do not imply them.

    Matching several things at once costs about the product of their sizes. If a maximum length makes that too much, a
    smaller maximum is used: shorter strings fit the schema as well.
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
    """Check that patterns can be matched at once, together with something else that has ``others`` places.

    Raises:
        UnreadableError: the patterns are too large.
    """
    if prod(pattern.size for pattern in patterns) * others > MOST_PLACES:
        raise UnreadableError(at, "its patterns are too large to be joined, with each other or with a length")


def number(reader: Checks, facts: Facts, *, whole: bool) -> Node | None:
    """Return the node of a number; None if no number fits.

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
    """Return a number's bounds, without those that are beyond all numbers that are generated here."""
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
    """Return the least common multiple."""
    places = max(map(_places, numbers))
    return Decimal(lcm(*(int(number.scaleb(places)) for number in numbers))).scaleb(-places)


def _places(number: Decimal) -> int:
    """Return the number of digits after the point."""
    return max(0, -int(number.normalize().as_tuple().exponent))


def _multiples(reader: Checks, facts: Facts, step: Decimal, low: Decimal | None, high: Decimal | None) -> Node | None:
    """Return the node of multiples of ``step``, which llguidance matches by remainders; None if there are none.

    Raises:
        UnpromisedError: there are too many remainders, or digits.
    """
    far = Decimal(10) ** (number_patterns.DIGITS - _places(step)) - 1
    too_far = any(bound is not None and abs(bound) > far for bound in (low, high))
    if step.scaleb(_places(step)) > MOST_REMAINDERS or _places(step) >= number_patterns.DIGITS or too_far:
        raise UnpromisedError(facts.at, f"multipleOf {step}")
    found: list[Node] = []
    for places in range(_places(step) + 1):  # llguidance needs all digits of the step: 0.50 as a multiple of 0.25
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
