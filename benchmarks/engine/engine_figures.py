"""Figures from the rounds of the engine's benchmark: each is the median of all rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import cast

from benchmarks.running.figures import Figures
from benchmarks.running.serve import Answer
from benchmarks.work.conversation import ANSWER, NEW_TOKENS, SHORT_ANSWER

PLAIN, DRAFTED = "conversation", "drafted conversation"
REPLAY, DRAFTED_REPLAY = "replay", "drafted replay"


def conversation_seconds(figures: Figures, which: str = PLAIN) -> float:
    """The whole conversation."""
    return _middle(figures, lambda each: sum(_floats(each, which, "whole")))


def first_token_seconds(figures: Figures, turn: int, which: str = PLAIN) -> float:
    """From a turn's prompt to its first token. Turns count from 1."""
    return _middle(figures, lambda each: _floats(each, which, "first")[turn - 1])


def seconds_per_new_token(figures: Figures, turn: int) -> float:
    """The same for each token that the turn added."""
    return first_token_seconds(figures, turn) / NEW_TOKENS[turn - 1]


def said(figures: Figures) -> list[int]:
    """Return the tokens that were generated in the first round's conversation, all turns together."""
    turns = cast("Sequence[Sequence[int]]", _part(figures.rounds[0], PLAIN)["tokens"])
    return [token for turn in turns for token in turn]


def read_again(figures: Figures) -> int:
    """Count the tokens said before that were read once more, in all turns of the first round."""
    reused = cast("Sequence[int]", _part(figures.rounds[0], PLAIN)["reused"])
    behind = [sum(NEW_TOKENS[:turn]) + ANSWER * turn for turn in range(len(NEW_TOKENS))]
    return sum(behind) - sum(reused)


def one_after_another(figures: Figures) -> float:
    """Tokens generated a second, by short conversations one after another."""
    return _middle(figures, lambda each: _speed(_floats(each, "together", "alone")))


def at_once(figures: Figures, count: int) -> float:
    """Tokens generated a second, by so many short conversations at once."""
    return _middle(figures, lambda each: count * _speed([_number(each, "together", str(count))]))


def replay_speed(figures: Figures, which: str) -> float:
    """Tokens a second of the tool-calling turn, behind the first one."""
    return _middle(
        figures,
        lambda each: (
            (_number(each, which, "tokens") - 1) / (_number(each, which, "whole") - _number(each, which, "first"))
        ),
    )


def replay_seconds(figures: Figures, which: str) -> float:
    """The whole tool-calling turn, reading its prompt included."""
    return _middle(figures, lambda each: _number(each, which, "whole"))


def replay_count(figures: Figures, which: str, what: str) -> int:
    """``tokens``, ``as_taught``, ``drafted`` or ``accepted`` of all rounds."""
    return round(sum(_number(each, which, what) for each in figures.rounds))


def host_share(figures: Figures, rows: int) -> float:
    """The engine's own Python, as a share of a step."""
    return _middle(figures, lambda each: _step(each, rows)["host"] / _step(each, rows)["seconds"])


def step_seconds(figures: Figures, rows: int, what: str = "seconds") -> float:
    """A decode step; or the ``host``, ``dispatch`` or ``device`` seconds of one."""
    return _middle(figures, lambda each: _step(each, rows)[what] / _step(each, rows)["steps"])


def step_bytes(figures: Figures, rows: int) -> float:
    """Bytes copied to the device in a decode step."""
    return _middle(figures, lambda each: _step(each, rows)["bytes"] / _step(each, rows)["steps"])


def compiles(figures: Figures) -> int:
    """Programs compiled while measuring, in all rounds."""
    return sum(cast("int", each["compiles"]) for each in figures.rounds)


def _middle(figures: Figures, read: Callable[[Answer], float]) -> float:
    return median(read(each) for each in figures.rounds)


def _part(each: Answer, which: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", each[which])


def _floats(each: Answer, which: str, what: str) -> Sequence[float]:
    return cast("Sequence[float]", _part(each, which)[what])


def _number(each: Answer, which: str, what: str) -> float:
    return cast("float", _part(each, which)[what])


def _step(each: Answer, rows: int) -> Mapping[str, float]:
    return cast("Mapping[str, float]", _part(each, "steps")[str(rows)])


def _speed(seconds: Sequence[float]) -> float:
    return SHORT_ANSWER * len(seconds) / sum(seconds)
