"""Numbers between two bounds, as patterns of their digits."""

from __future__ import annotations

from decimal import Decimal

from langchain_gemma_jax.engine.grammar.pattern import AnyOf, Chars, Pattern, Row, Times, exactly, optional

WHOLE_DIGITS = 18  # of a whole number that nobody gave a bound: it fits 64 bits
DIGITS = 15  # of other numbers: all of these digits count in a float
MOST_DIGITS = 40  # of a bound

_DIGIT = Chars(((48, 57),))
_NOT_ZERO = Chars(((49, 57),))
_MINUS, _POINT = exactly("-"), exactly(".")


def whole(low: int | None, high: int | None) -> Pattern | None:
    """Whole numbers from ``low`` to ``high``. None: there is none."""
    return _signed(*_limits(low, high, 10**WHOLE_DIGITS - 1), 0)


def decimal(low: Decimal | None, high: Decimal | None, places: int | None = None) -> Pattern | None:
    """Numbers from ``low`` to ``high`` with so many digits behind the point, or as many as a float holds.

    None: there is none.
    """
    bounds = [abs(bound) for bound in (low, high) if bound is not None]
    if places is None:
        whole_digits = max((len(str(int(bound))) for bound in bounds if bound >= 1), default=0)
        needed = max((-int(bound.as_tuple().exponent) for bound in bounds), default=0)  # a float's own digits
        places = max(0, min(needed, MOST_DIGITS), DIGITS - whole_digits)
    unit = Decimal(10) ** places
    least = None if low is None else int((low * unit).to_integral_value("ROUND_CEILING"))
    most = None if high is None else int((high * unit).to_integral_value("ROUND_FLOOR"))
    return _signed(*_limits(least, most, 10 ** (DIGITS + places) - 1), places)


def multiples(step: Decimal, *, negative: bool, zero: bool) -> Pattern | None:
    """Multiples of a number whose multiples can be told by their last digits. None: it is another."""
    point = max(0, -int(step.normalize().as_tuple().exponent))  # digits behind it
    count = int(step.scaleb(point))
    places = next((places for places in range(point, 4) if 10**places % count == 0), None)
    if places is None:
        return None
    endings = [f"{number:0{places}}" if places else "" for number in range(0, 10**places, count)]
    if point:  # then they are as many as there are behind it
        fraction = optional(Row((_POINT, AnyOf(tuple(map(exactly, endings))))))
        some = AnyOf(tuple(exactly(f"0.{ending}") for ending in endings if ending.strip("0")))
        positive = AnyOf((some, Row((_NOT_ZERO, Times(_DIGIT, 0, DIGITS - 1), fraction))))
    else:
        short = [exactly(str(number)) for number in range(count, 10**places, count)]
        last = AnyOf(tuple(map(exactly, endings)))
        positive = AnyOf((*short, Row((_NOT_ZERO, Times(_DIGIT, 0, DIGITS - 1 - places), last))))
    signed = Row((optional(_MINUS), positive)) if negative else positive
    return AnyOf((exactly("0"), signed)) if zero else signed


def _limits(low: int | None, high: int | None, usual: int) -> tuple[int, int]:
    """Both bounds. Where one is missing, there are as many digits as usual, or as the other bound has."""
    most = max(usual, *(10 ** len(str(abs(bound))) - 1 for bound in (low, high) if bound is not None), 0)
    return -most if low is None else low, most if high is None else high


def _signed(low: int, high: int, places: int) -> Pattern | None:
    """Numbers with ``places`` digits behind the point: ``low`` and ``high`` are counted in their last place."""
    options = []
    if high >= max(low, 0):
        options.append(_positive(max(low, 0), high, places))
    if low < 0 and low <= high:
        options.append(Row((_MINUS, _positive(max(1, -high), -low, places))))
    return AnyOf(tuple(options)) if options else None


def _positive(low: int, high: int, places: int) -> Pattern:
    unit = 10**places
    (first, after), (last, until) = divmod(low, unit), divmod(high, unit)
    least, most = f"{after:0{places}}" if places else "", f"{until:0{places}}" if places else ""
    if first == last:
        return Row((exactly(str(first)), _between(least, most)))
    options: list[Pattern] = []
    if after:
        options.append(Row((exactly(str(first)), _POINT, _at_least(least))))
        first += 1
    if until == unit - 1:
        last += 1
    if first < last:
        options.append(Row((_digits(first, last - 1), _any_fraction(places))))
    if until < unit - 1:
        options.append(Row((exactly(str(last)), _at_most(most))))
    return AnyOf(tuple(options))


# Behind the point. Missing digits are zeros.


def _any_fraction(places: int) -> Pattern:
    return optional(Row((_POINT, Times(_DIGIT, 1, places)))) if places else Row(())


def _between(low: str, high: str) -> Pattern:
    if not low.strip("0"):
        return _at_most(high)
    return Row((_POINT, _digits_between(low, high)))


def _at_most(high: str) -> Pattern:
    return optional(Row((_POINT, _digits_at_most(high)))) if high else Row(())


def _at_least(low: str) -> Pattern:
    """One digit at the least; ``low`` is more than zero."""
    first, rest = int(low[0]), low[1:]
    same = _at_least(rest) if rest.strip("0") else Times(_DIGIT, 0, len(rest))
    options: list[Pattern] = [Row((exactly(low[0]), same))]
    if first < 9:
        options.append(Row((_span(first + 1, 9), Times(_DIGIT, 0, len(rest)))))
    return AnyOf(tuple(options))


def _digits_at_most(high: str) -> Pattern:
    first, rest = int(high[0]), high[1:]
    options: list[Pattern] = [Row((exactly(high[0]), optional(_digits_at_most(rest)) if rest else Row(())))]
    if first > 0:
        options.append(Row((_span(0, first - 1), Times(_DIGIT, 0, len(rest)))))
    return AnyOf(tuple(options))


def _digits_between(low: str, high: str) -> Pattern:
    """``low`` is more than zero."""
    if low[0] == high[0]:
        low_rest, high_rest = low[1:], high[1:]
        if low_rest.strip("0"):
            return Row((exactly(low[0]), _digits_between(low_rest, high_rest)))
        return Row((exactly(low[0]), optional(_digits_at_most(high_rest)) if high_rest else Row(())))
    first, last, rest = int(low[0]), int(high[0]), len(low) - 1
    from_low = _at_least(low[1:]) if low[1:].strip("0") else Times(_DIGIT, 0, rest)
    to_high = optional(_digits_at_most(high[1:])) if rest else Row(())
    options: list[Pattern] = [Row((exactly(low[0]), from_low)), Row((exactly(high[0]), to_high))]
    if last - first > 1:
        options.append(Row((_span(first + 1, last - 1), Times(_DIGIT, 0, rest))))
    return AnyOf(tuple(options))


# Before it. No zeros lead.


def _digits(low: int, high: int) -> Pattern:
    """Whole numbers that are not negative."""
    options: list[Pattern] = []
    if low == 0:
        options.append(exactly("0"))
        low = 1
    shortest, longest = len(str(low)), len(str(high))
    if low <= high and shortest == longest:
        options.append(_same_length(str(low), str(high)))
    elif low <= high:
        options.append(_same_length(str(low), "9" * shortest))
        if longest - shortest > 1:
            options.append(Row((_NOT_ZERO, Times(_DIGIT, shortest, longest - 2))))
        options.append(_same_length("1" + "0" * (longest - 1), str(high)))
    return AnyOf(tuple(options))


def _same_length(low: str, high: str) -> Pattern:
    count = len(low)
    if count == 0:
        return Row(())
    first, last = int(low[0]), int(high[0])
    if low[1:] == "0" * (count - 1) and high[1:] == "9" * (count - 1):
        return Row((_span(first, last), Times(_DIGIT, count - 1, count - 1)))
    if first == last:
        return Row((exactly(low[0]), _same_length(low[1:], high[1:])))
    options: list[Pattern] = [
        Row((exactly(low[0]), _same_length(low[1:], "9" * (count - 1)))),
        Row((exactly(high[0]), _same_length("0" * (count - 1), high[1:]))),
    ]
    if last - first > 1:
        options.append(Row((_span(first + 1, last - 1), Times(_DIGIT, count - 1, count - 1))))
    return AnyOf(tuple(options))


def _span(low: int, high: int) -> Pattern:
    return Chars(((48 + low, 48 + high),))
