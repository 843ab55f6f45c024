"""``Sampling``: the options by which a request's tokens are chosen and its answer ends, checked when it is made."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import cast

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.nodes import Grammar

MAX_LOGIT_BIASES = 512
MAX_STOPS = 64  # of each kind
MAX_STOP_LENGTH = 1024  # characters of a stop string
MAX_TOP_LOGPROBS = 20
LARGEST_INT = 2**31 - 1  # positions and token ids are int32
LARGEST_ID = LARGEST_INT - 1  # the largest int32 marks places without an id on the device
SMALLEST_PENALTY = 1e-30  # a divisor: the device computes in float32, which can still hold it


class FrozenBias(Mapping[int, float]):
    """Token id to bias: read-only, sorted by id, hashable."""

    __slots__ = ("_pairs", "_values")

    def __init__(self, values: Mapping[int, float]) -> None:
        self._values = dict(sorted(values.items()))
        self._pairs = tuple(self._values.items())

    def __getitem__(self, token: int) -> float:
        return self._values[token]

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Options for sampling and stopping one request. The defaults always take the most likely token.

        Sampling()                                                    # greedy
        Sampling(temperature=1.0, top_k=64, top_p=0.95, seed=7)       # what Gemma's authors recommend, repeatable
        Sampling(stop=["Observation:"], max_tokens=512)               # an agent's step
        Sampling(logit_bias={236771: -100}, logprobs=True, top_logprobs=5)

    Values are frozen, can be compared and hashed, and are changed with ``dataclasses.replace``. They apply in this
    order: penalties and biases change the model's scores, the temperature divides them, then ``top_k``, ``top_p`` and
    ``min_p`` each remove tokens from those that remain. Tokens that tie with the last one kept are kept.

    Raises:
        InputError: a value is not possible. The message says which values are.
    """

    temperature: float = 0.0
    """From 0 to 100. 0 takes the most likely token, 1 draws from the model's own distribution, more makes it
    flatter."""
    top_k: int = 0
    """Draw only from this number of the most likely tokens. 0: from all of them."""
    top_p: float = 1.0
    """Above 0, up to 1. Draw from the smallest set of the most likely tokens that together have this probability."""
    min_p: float = 0.0
    """From 0 to below 1. Leave out tokens that are less likely than this share of the most likely one's probability."""
    repetition_penalty: float = 1.0
    """Above 0 (at least 1e-30), up to 100. Divides the positive scores of tokens that the prompt or the answer has, and
    multiplies their negative ones. 1: no change; more than 1 discourages them."""
    presence_penalty: float = 0.0
    """From -100 to 100. Subtracted from the scores of tokens that the answer has."""
    frequency_penalty: float = 0.0
    """From -100 to 100. Subtracted from the score of a token once for each time that the answer has it."""
    seed: int | None = None
    """From -2**63 to 2**64 - 1; kept modulo 2**64. The same seed, prompt and options give the same text, no matter what
    else runs at the time. None: a new seed for each request."""
    logit_bias: Mapping[int, float] = FrozenBias({})
    """Added to the scores of these token ids: from -100 to 100, where -100 bans the token. At most 512."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer, and are not part of it. One str, or a sequence of at most 64, of up to 1024 characters
    each."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end the answer, besides the model's own end of turn. At most 64."""
    ignore_eos: bool = False
    """Continue past the model's own end of turn, for benchmarks. ``stop`` and ``stop_ids`` still apply."""
    max_tokens: int | None = None
    """The most tokens to generate, at least 1. Tokens that a ``grammar`` forces at the end, such as closing brackets,
    may come in addition. None: until the context is full."""
    logprobs: bool = False
    """Report each token's log-probability in the model's own distribution, before any of the options above."""
    top_logprobs: int = 0
    """From 0 to 20. With ``logprobs=True``: also report this number of the most likely tokens at each place."""
    confidence: bool = False
    """Report the log-probability of each token that was drawn, and 0 for those that a ``grammar`` forces, for which the
    model is not run. Has no effect with ``logprobs=True``."""
    scored: tuple[int, ...] = ()
    """Report the log-probabilities of these token ids at each place, likely or not: at most 20. Not together with
    ``logprobs=True``."""
    grammar: Grammar | None = None
    """The grammar of the text: ``json_grammar(schema)`` or ``grammar_for(tools, ...)`` of ``dialects``. At
    ``max_tokens`` or the end of the context the text ends, complete or not: see ``Completion.complete``. Only forced
    tokens that complete it, such as closing brackets, are still appended. Stop strings apply where the grammar leaves
    the text free."""
    drafts: bool = True
    """Draft text that repeats itself. This changes the speed of an answer, never the answer. It has no effect if the
    engine's own ``drafts`` is off."""

    def with_checked(self, **values: object) -> Sampling:
        """Return the options with values that are checked already, such as those of another ``Sampling``."""
        made = object.__new__(Sampling)
        made.__dict__.update(self.__dict__ | values)
        return made

    @property
    def measured(self) -> bool:
        """True if any log-probabilities of the answer's tokens are reported."""
        return self.logprobs or self.confidence or bool(self.scored)

    def __post_init__(self) -> None:
        for name in ("ignore_eos", "logprobs", "confidence", "drafts"):
            if not isinstance(value := getattr(self, name), bool):
                raise _error(name, "True or False", value)
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            raise _error("grammar", "what json_grammar(...) or grammar_for(...) gave, or None", self.grammar)
        checked: dict[str, object] = {
            "temperature": _real("temperature", self.temperature, 0.0, 100.0),
            "top_k": _whole("top_k", self.top_k, 0, LARGEST_INT, hint="0 switches it off"),
            "top_p": _real("top_p", self.top_p, 0.0, 1.0, above=True, hint="1 switches it off"),
            "min_p": _real("min_p", self.min_p, 0.0, 1.0, below=True, hint="0 switches it off"),
            "repetition_penalty": _real(
                "repetition_penalty", self.repetition_penalty, SMALLEST_PENALTY, 100.0, hint="1 switches it off"
            ),
            "presence_penalty": _real("presence_penalty", self.presence_penalty, -100.0, 100.0),
            "frequency_penalty": _real("frequency_penalty", self.frequency_penalty, -100.0, 100.0),
            "logit_bias": _bias(self.logit_bias),
            "stop": _stops(self.stop),
            "stop_ids": _ids("stop_ids", self.stop_ids, MAX_STOPS),
            "scored": tuple(dict.fromkeys(_ids("scored", self.scored, MAX_TOP_LOGPROBS))),
            "top_logprobs": _whole("top_logprobs", self.top_logprobs, 0, MAX_TOP_LOGPROBS),
        }
        if self.seed is not None:
            hint = "None draws one for each request"
            checked["seed"] = _whole("seed", self.seed, -(2**63), 2**64 - 1, hint=hint) % 2**64
        if self.max_tokens is not None:
            hint = "None generates until the context is full"
            checked["max_tokens"] = _whole("max_tokens", self.max_tokens, 1, LARGEST_INT, hint=hint)
        if self.scored and self.logprobs:
            raise InputError("scored: expected none together with logprobs=True, which reports the most likely tokens.")
        if checked["top_logprobs"] and not self.logprobs:
            raise InputError(
                f"top_logprobs={checked['top_logprobs']} needs logprobs=True: set both, or leave both out."
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen


def _error(name: str, expected: str, found: object, hint: str = "") -> InputError:
    try:
        shown = reprlib.repr(found)
    except ValueError:  # Python does not print an int of more than 4300 digits
        shown = f"{type(found).__name__} with very many digits"
    return InputError(f"{name}: expected {expected}, found {shown}.{f' {hint}.' if hint else ''}")


# True and False are ints to Python, and a mistake here. NumPy registers its scalars as Integral and Real.


def _whole(name: str, value: object, low: int, high: int, *, hint: str = "") -> int:
    expected = f"a whole number from {_power(low)} to {_power(high)}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _error(name, expected, value, hint)
    number = int(value)
    if not low <= number <= high:
        raise _error(name, expected, value, hint)
    return number


def _real(
    name: str, value: object, low: float, high: float, *, above: bool = False, below: bool = False, hint: str = ""
) -> float:
    """Return a float in the range, checked. ``above`` and ``below`` exclude its ends."""
    expected = f"a number {'above' if above else 'from'} {low:g} {'to below' if below else 'to'} {high:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _error(name, expected, value, hint)
    try:
        number = float(value)
    except OverflowError:  # an int that no float can hold
        raise _error(name, expected, value, hint) from None
    if not low <= number <= high or (above and number == low) or (below and number == high):  # NaN is in no range
        raise _error(name, expected, value, hint)
    return number


def _power(number: int) -> str:
    """Return a bound as a readable text, such as "2**31 - 1"."""
    for offset, shown in ((0, ""), (1, " - 1")):
        size = abs(number) + offset
        if size >= 2**20 and size & (size - 1) == 0 and not (number < 0 and offset):
            return f"{'-' if number < 0 else ''}2**{size.bit_length() - 1}{shown}"
    return str(number)


def _bias(value: object) -> FrozenBias:
    if not isinstance(value, Mapping):
        raise _error("logit_bias", "a mapping of token id to bias", value)
    if len(value) > MAX_LOGIT_BIASES:
        raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES} entries, found {len(value)}.")
    return FrozenBias(
        {
            _whole("logit_bias, a key", token, 0, LARGEST_ID, hint="Keys are token ids"): _real(
                f"logit_bias[{token}]", bias, -100.0, 100.0, hint="-100 bans the token"
            )
            for token, bias in value.items()
        }
    )


def _stops(value: object) -> tuple[str, ...]:
    stops = _several("stop", (value,) if isinstance(value, str) else value, "a str, or a sequence of")
    for index, stop in enumerate(stops):
        if not isinstance(stop, str) or not 1 <= len(stop) <= MAX_STOP_LENGTH:
            raise _error(f"stop[{index}]", f"a str of 1 to {MAX_STOP_LENGTH} characters", stop)
    return cast("tuple[str, ...]", stops)


def _ids(name: str, value: object, most: int) -> tuple[int, ...]:
    ids = _several(name, value, "a sequence of", most)
    return tuple(_whole(f"{name}[{index}]", token, 0, LARGEST_ID) for index, token in enumerate(ids))


def _several(name: str, value: object, expected: str, most: int = MAX_STOPS) -> tuple[object, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise _error(name, f"{expected} at most {most}", value, "Leave it out, or pass (), for none")
    if len(value) > most:
        raise InputError(f"{name}: expected {expected} at most {most}, found {len(value)}.")
    return tuple(value)
