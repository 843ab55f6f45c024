"""Numbers between two bounds, as terminals over their digits."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from langchain_gemma_jax.grammar.nodes import Terminal

WHOLE_DIGITS = 18  # of a whole number without a bound: it fits 64 bits
DIGITS = 15  # of other numbers: a float keeps all of these digits
MOST_DIGITS = 40  # of a bound


def whole(low: int | None, high: int | None) -> Terminal | None:
    """Return the terminal of whole numbers from ``low`` to ``high``; None if there are none."""
    return _between(low, high, WHOLE_DIGITS, 0)


def decimal(low: Decimal | None, high: Decimal | None, *, above: bool = False, below: bool = False) -> Terminal | None:
    """Return the terminal of numbers from ``low`` to ``high``; None if there are none.

    ``above`` excludes ``low`` itself, and ``below`` excludes ``high``. Numbers have as many digits as a float keeps.
    """
    bounds = [abs(bound) for bound in (low, high) if bound is not None]
    places = max(0, DIGITS - max((len(str(int(bound))) for bound in bounds if bound >= 1), default=0))
    if not above and not below:  # then more digits do no harm, and the bound itself may have them
        places = max([places, *(min(MOST_DIGITS, -int(bound.as_tuple().exponent)) for bound in bounds)])
    unit = Decimal(10) ** places
    least = None if low is None else int((low * unit).to_integral_value("ROUND_CEILING"))
    most = None if high is None else int((high * unit).to_integral_value("ROUND_FLOOR"))
    if above and least is not None and low == least / unit:
        least += 1
    if below and most is not None and high == most / unit:
        most -= 1
    return _between(least, most, DIGITS, places)


def _between(low: int | None, high: int | None, digits: int, places: int) -> Terminal | None:
    """Return the terminal of numbers. Bounds are in units of the last place; without one, ``digits`` is the limit."""
    return _without_bounds(digits, places) if low is None and high is None else _written(low, high, digits, places)


@cache  # the keys are this package's constants: nothing of a tenant is kept, or shows in another tenant's timing
def _without_bounds(digits: int, places: int) -> Terminal | None:
    return _written(None, None, digits, places)


def _written(low: int | None, high: int | None, digits: int, places: int) -> Terminal | None:
    usual = 10 ** (digits + places) - 1
    far = max(usual, *(10 ** len(str(abs(bound))) - 1 for bound in (low, high) if bound is not None), 0)
    low, high = -far if low is None else low, far if high is None else high
    if low > high:
        return None
    fraction = f"(?:\\.[0-9]{{1,{places}}})?" if places else ""
    form = f"/(?:0|[1-9][0-9]{{0,{max(digits, len(str(max(abs(low), abs(high)))) - places) - 1}}}){fraction}/"
    options = []
    if high >= 0:
        options.append(_positive(form, max(low, 0), high, places))
    if low < 0:
        options.append(f'"-" ({_positive(form, max(1, -high), -low, places)})')
    return Terminal(" | ".join(f"({option})" for option in options), 1)


def _positive(form: str, low: int, high: int, places: int) -> str:
    found = f"{form} & /{_up_to(high, places)}/"
    return f"{found} & ~/{_up_to(low - 1, places)}/" if low > 0 else found


def _up_to(high: int, places: int) -> str:
    """Return a regular expression that, among texts in a number's form, matches those from 0 to ``high``.

    A smaller number has fewer digits before the point, or a smaller digit at the first place where the two differ.
    """
    before, after = divmod(high, 10**places)
    whole, fraction = str(before), f"{after:0{places}}" if places else ""
    rest = "(?:\\.[0-9]+)?" if places else ""
    options = [f"[0-9]{{1,{len(whole) - 1}}}{rest}"] if len(whole) > 1 else []
    options += [
        f"{whole[:place]}{_below(digit)}[0-9]{{{len(whole) - place - 1}}}{rest}"
        for place, digit in enumerate(whole)
        if digit != "0"
    ]
    same = [f"{fraction[:place]}{_below(digit)}[0-9]*" for place, digit in enumerate(fraction) if digit != "0"]
    ends = [fraction[:place] for place in range(1, places + 1)]
    options.append(f"{whole}(?:\\.(?:{'|'.join([*same, *ends])}))?" if places else whole)
    return f"(?:{'|'.join(options)})"


def _below(digit: str) -> str:
    return f"[0-{int(digit) - 1}]"
