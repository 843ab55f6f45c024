"""The parts of a text that have no further structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

from langchain_gemma_jax.engine.grammar import characters, pattern
from langchain_gemma_jax.engine.grammar.automaton import Automaton, ByteAutomaton, State, counter, none_of
from langchain_gemma_jax.engine.grammar.characters import EVERY, Characters
from langchain_gemma_jax.engine.grammar.pattern import ANYTHING, AnyOf, Chars, Pattern, Times

WRITTEN: Characters = characters.without(EVERY, ((0, 8), (11, 12), (14, 31), (127, 127)))
"""What strings are made of that nobody asked anything of: all but the control characters, with line ends and tabs."""


class Machine(Protocol):
    """How a leaf is read, byte by byte. States are values: one can always go on from an earlier one."""

    @property
    def start(self) -> State: ...

    def step(self, state: State, byte: int) -> State | None:
        """Where a byte leads. None: it cannot come here."""

    def distance(self, state: State) -> int:
        """The least number of bytes to an end. 0: it can end here."""

    def ending(self, state: State) -> bytes:
        """The fewest bytes to an end."""


class Leaf(ABC):
    """One of the parts; values, so that what was made of one can be found again."""

    lazy: ClassVar[bool] = False  # it ends as soon as it can

    @abstractmethod
    def terminal(self) -> str:
        """It as a terminal of llguidance's."""

    @abstractmethod
    def automaton(self) -> Machine:
        """How it is read. Ask ``machine``, which remembers it.

        Raises:
            ValueError: it is too large, or there is no such text.
        """


@dataclass(frozen=True)
class Words(Leaf):
    """A text that fits all of the patterns, has so many characters, and is none of the excluded ones.

    Without a pattern it is anything that can be written. ``escaped``: it stands inside JSON's quotes.
    """

    patterns: tuple[Pattern, ...] = ()
    low: int = 0
    high: int | None = None
    excluded: frozenset[str] = frozenset()
    escaped: bool = False

    def terminal(self) -> str:
        parts = list(self.patterns)
        if not parts or self._is_counted:
            each = Chars(EVERY if parts else WRITTEN)
            parts.append(Times(each, self.low, self.high))
        found = " & ".join(map(self._regex, parts))
        if not self.excluded:
            return found
        words = sorted(self.excluded)
        return f"{found} & ~{self._regex(AnyOf(tuple(map(pattern.exactly, words))))}"

    def automaton(self) -> Machine:
        if not self.patterns and not self.excluded:
            return Counted(_byte_automaton((Chars(WRITTEN),), escaped=self.escaped), self.low, self.high)
        parts = self.patterns or (Times(Chars(WRITTEN)),)
        found = Automaton.of(parts[0])
        for part in parts[1:]:
            found = found.both(Automaton.of(part))
        if self._is_counted:
            found = found.both(counter(self.low, self.high))
        if self.excluded:
            found = found.both(none_of(self.excluded))
        return _not_empty(ByteAutomaton(found, escaped=self.escaped))

    @property
    def _is_counted(self) -> bool:
        """Whether the number of characters matters, beside the patterns."""
        sizes = [pattern.length(part) for part in self.patterns]
        low = max((least for least, _ in sizes), default=0)
        high = min((most for _, most in sizes if most is not None), default=None)
        return low < self.low or (self.high is not None and (high is None or high > self.high))

    def _regex(self, part: Pattern) -> str:
        return f"/{pattern.regex(pattern.in_json(part) if self.escaped else part)}/"


@dataclass(frozen=True)
class Number(Leaf):
    """A number by its digits."""

    pattern: Pattern

    def terminal(self) -> str:
        return f"/{pattern.regex(self.pattern)}/"

    def automaton(self) -> Machine:
        return _byte_automaton((self.pattern,), escaped=False)


@dataclass(frozen=True)
class Before(Leaf):
    """Free text in which no line begins with the marker, which is a line by itself."""

    marker: str

    def terminal(self) -> str:
        marker = pattern.regex(pattern.exactly(self.marker))
        every = pattern.regex(ANYTHING)
        return f"/{every}/ & ~/(?:{every}\\n)?{marker}{every}/"

    def automaton(self) -> Machine:
        return ByteAutomaton(_lines(self.marker, found=False), escaped=False)


@dataclass(frozen=True)
class UpTo(Leaf):
    """Free text and the first line that begins with the marker, up to its end."""

    marker: str
    lazy: ClassVar[bool] = True

    def terminal(self) -> str:
        return f"/(?:{pattern.regex(ANYTHING)}\\n)?{pattern.regex(pattern.exactly(self.marker))}/"

    def automaton(self) -> Machine:
        return ByteAutomaton(_lines(self.marker, found=True), escaped=False)


@lru_cache(maxsize=512)
def machine(leaf: Leaf) -> Machine:
    """How a leaf is read.

    Raises:
        ValueError: it is too large, or there is no such text.
    """
    return leaf.automaton()


class Counted:
    """So many characters of one kind, one behind the other."""

    def __init__(self, character: ByteAutomaton, low: int, high: int | None) -> None:
        self._character, self._low, self._high = character, low, high
        self.start: State = character.start

    def step(self, state: State, byte: int) -> State | None:
        """See ``Machine``."""
        if state[0] == self._high or not (after := self._character.step(state, byte)):
            return None
        if self._character.distance(after) == 0:
            return state[0] + 1, self.start[1]
        return state[0], after[1]

    def distance(self, state: State) -> int:
        """See ``Machine``."""
        count, inside = state
        begun = inside != self.start[1]
        rest = self._character.distance(state) if begun else 0
        return rest + max(0, self._low - count - begun)

    def ending(self, state: State) -> bytes:
        """See ``Machine``."""
        count, inside = state
        begun = inside != self.start[1]
        rest = self._character.ending(state) if begun else b""
        return rest + self._character.ending(self.start) * max(0, self._low - count - begun)


@lru_cache(maxsize=64)
def _byte_automaton(parts: tuple[Pattern], *, escaped: bool) -> ByteAutomaton:
    return ByteAutomaton(Automaton.of(parts[0]), escaped=escaped)


def _not_empty(found: ByteAutomaton) -> ByteAutomaton:
    if found.is_empty:
        raise ValueError("no text fits all that is asked of it")
    return found


def _lines(marker: str, *, found: bool) -> Automaton:
    """Knuth, Morris and Pratt's automaton for a line end and the marker, as if a line end were before the text."""
    wanted = "\n" + marker
    edges: list[tuple[tuple[Characters, int], ...]] = []
    states = [1, *(n for n in range(len(wanted)) if n != 1)]  # how much of what is wanted stands at the text's end
    numbers = {state: number for number, state in enumerate(states)} | {len(wanted): len(states)}
    for state in states:
        leads: dict[int, list[str]] = {}
        for character in dict.fromkeys(wanted):
            leads.setdefault(_seen(wanted, wanted[:state] + character), []).append(character)
        rest = characters.without(EVERY, characters.of(wanted))
        edges.append((*((characters.of("".join(each)), numbers[to]) for to, each in leads.items()), (rest, numbers[0])))
    edges.append(())
    whole = frozenset({len(states)})
    return Automaton(tuple(edges), whole if found else frozenset(range(len(states))))


def _seen(wanted: str, text: str) -> int:
    return next(n for n in range(min(len(wanted), len(text)), -1, -1) if text.endswith(wanted[:n]))
