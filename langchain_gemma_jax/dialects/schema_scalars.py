"""Numbers and strings that are as a schema asks."""

from __future__ import annotations

from decimal import Decimal

from langchain_gemma_jax.dialects import number_patterns
from langchain_gemma_jax.dialects.schema_facts import LARGEST, Facts
from langchain_gemma_jax.dialects.writing import Asked, Writing
from langchain_gemma_jax.engine.grammar.leaves import Number, Words, machine
from langchain_gemma_jax.engine.grammar.nodes import Literal, Node, either
from langchain_gemma_jax.engine.grammar.pattern import Pattern
from langchain_gemma_jax.errors import SchemaError

FEW = 500  # multiples that are listed one by one
LONGEST = 10_000  # characters that a string must have
SHORTER = (1000, 200)  # characters that a string has at most, where more cannot be counted beside its pattern


def string(facts: Facts, writing: Writing) -> Node | None:
    """A string; None if there is none."""
    asked = asked_string(facts)
    return None if asked is None else writing.string(asked)


def asked_string(facts: Facts) -> Asked | None:
    """What is asked of a string; None if that contradicts itself.

    Raises:
        SchemaError: it cannot be promised.
    """
    low, high = facts.length
    if high is not None and high < low:
        return None
    if low > LONGEST:
        raise SchemaError(facts.at, f"minLength: expected at most {LONGEST:,}, found {low}: no model writes so much")
    patterns = tuple(dict.fromkeys(facts.patterns))
    if not patterns:
        return Asked((), low, high)
    # To count far takes many states. Of what is shorter, all is as it is asked as well.
    limits = [limit for limit in SHORTER if low <= limit < high] if high is not None else []
    for limit in (high, *limits):
        try:
            machine(Words(patterns, low, limit))
        except ValueError as error:
            problem = error
        else:
            return Asked(patterns, low, limit)
    raise SchemaError(facts.at, f"what is asked of a string: {problem}") from None


def number(facts: Facts, *, whole: bool) -> Node | None:
    """A number; None if there is none.

    Raises:
        SchemaError: it cannot be promised.
    """
    low, high = _bounds(facts)
    if low is not None and high is not None and (low > high or (low == high and (facts.above or facts.below))):
        return None
    if len(facts.steps) > 1:
        facts.cannot(facts.at, "multipleOf, more than once")
    if facts.steps:
        return _multiple(facts, facts.steps[0], low, high, whole=whole)
    if whole:
        least = None if low is None else _whole_bound(low, facts.above, 1)
        most = None if high is None else _whole_bound(high, facts.below, -1)
        return _number(number_patterns.whole(least, most))
    return _number(number_patterns.decimal(*_inside(facts, low, high)))


def _bounds(facts: Facts) -> tuple[Decimal | None, Decimal | None]:
    """The bounds, without those that no number reaches here anyway."""
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


def _inside(facts: Facts, low: Decimal | None, high: Decimal | None) -> tuple[Decimal | None, Decimal | None]:
    """The bounds, moved inward by a little where they are excluded themselves."""
    if low is not None and facts.above:
        low = _next(low, 1, facts.at)
    if high is not None and facts.below:
        high = _next(high, -1, facts.at)
    return low, high


def _next(bound: Decimal, inward: int, at: str) -> Decimal:
    """A decimal a little further on, that is another float too."""
    if abs(bound) >= LARGEST:
        raise SchemaError(at, f"the bound {bound} is excluded, and beyond 10**15 floats do not tell neighbours apart")
    digits = len(str(int(abs(bound)))) if abs(bound) >= 1 else 0
    unit = Decimal(10) ** -max(number_patterns.DIGITS - digits, -int(bound.as_tuple().exponent))
    while float(bound + inward * unit) == float(bound):
        unit *= 2
    return bound + inward * unit


def _multiple(facts: Facts, step: Decimal, low: Decimal | None, high: Decimal | None, *, whole: bool) -> Node | None:
    if low is not None and high is not None and (high - low) / step <= FEW:
        return _listed(facts, step, low, high, whole=whole)
    exponent = -int(step.normalize().as_tuple().exponent)
    if (
        step.normalize().as_tuple().digits == (1,) and 0 <= exponent <= number_patterns.DIGITS
    ):  # 1, 0.1, 0.01: so many digits
        low, high = (
            _aligned(bound, step, out, inward)
            for bound, out, inward in ((low, facts.above, 1), (high, facts.below, -1))
        )
        if whole or exponent == 0:
            return _number(number_patterns.whole(*(None if bound is None else int(bound) for bound in (low, high))))
        return _number(number_patterns.decimal(low, high, exponent))
    if high is None and (low is None or low == 0):
        found = number_patterns.multiples(step, negative=low is None, zero=low is None or not facts.above)
        if found is not None:
            return _number(found)
    facts.cannot(facts.at, f"multipleOf {step}")
    facts.steps.clear()
    return number(facts, whole=whole)


def _aligned(bound: Decimal | None, step: Decimal, excluded: bool, inward: int) -> Decimal | None:  # noqa: FBT001
    """The first multiple that a bound lets through."""
    if bound is None:
        return None
    count = (bound / step).to_integral_value("ROUND_CEILING" if inward > 0 else "ROUND_FLOOR")
    return (count + inward * (excluded and count * step == bound)) * step


def _listed(facts: Facts, step: Decimal, low: Decimal, high: Decimal, *, whole: bool) -> Node | None:
    first, last = _aligned(low, step, facts.above, 1), _aligned(high, step, facts.below, -1)
    if first is None or last is None:
        raise TypeError("a list has two ends")
    values = [first + step * count for count in range(int((last - first) / step) + 1)] if first <= last else []
    texts = [f"{value.normalize():f}" for value in values if not whole or value == value.to_integral_value()]
    return either(*(Literal("0" if text == "-0" else text) for text in texts)) if texts else None


def _number(pattern: Pattern | None) -> Node | None:
    return None if pattern is None else Number(pattern)
