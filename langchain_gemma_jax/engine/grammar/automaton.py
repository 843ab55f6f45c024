"""Finite automata: first of characters, where patterns are put together, then of bytes, as tokens come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_gemma_jax.engine.grammar import characters
from langchain_gemma_jax.engine.grammar.characters import EVERY, Characters
from langchain_gemma_jax.engine.grammar.pattern import ESCAPED, ESCAPES, AnyOf, Chars, Pattern, Row, Times
from langchain_gemma_jax.engine.grammar.utf8 import Bytes, encoded

MAX_STATES = 4096
MAX_REMEMBERED = 1 << 16  # steps that were looked up
FAR = 1 << 40  # farther than any end


@dataclass(frozen=True)
class Automaton:
    """Of characters, without empty steps. It begins in state 0."""

    edges: tuple[tuple[tuple[Characters, int], ...], ...]  # by state: what leads where
    ends: frozenset[int]

    @classmethod
    def of(cls, pattern: Pattern) -> Automaton:
        """Of the texts that a pattern describes.

        Raises:
            ValueError: it is too large.
        """
        return _Builder().whole(pattern)

    def both(self, other: Automaton) -> Automaton:
        """Of the texts that both describe."""
        numbers: dict[tuple[int, int], int] = {(0, 0): 0}
        edges: list[tuple[tuple[Characters, int], ...]] = []
        todo = deque(numbers)
        while todo:
            mine, others = todo.popleft()
            found: list[tuple[Characters, int]] = []
            for first, one in self.edges[mine]:
                for second, two in other.edges[others]:
                    if shared := characters.common(first, second):
                        if (one, two) not in numbers:
                            numbers[one, two] = _checked(len(numbers))
                            todo.append((one, two))
                        found.append((shared, numbers[one, two]))
            edges.append(tuple(found))
        ends = frozenset(n for (one, two), n in numbers.items() if one in self.ends and two in other.ends)
        return Automaton(tuple(edges), ends)


def counter(low: int, high: int | None) -> Automaton:
    """Of the texts of so many characters."""
    last = _checked(low if high is None else high)
    edges: list[tuple[tuple[Characters, int], ...]] = [((EVERY, number + 1),) for number in range(last)]
    edges.append(((EVERY, last),) if high is None else ())
    return Automaton(tuple(edges), frozenset(range(low, last + 1)))


def none_of(words: Iterable[str]) -> Automaton:
    """Of all texts but these."""
    children: list[dict[str, int]] = [{}]
    whole: set[int] = set()
    for word in words:
        state = 0
        for character in word:
            if character not in children[state]:
                children[state][character] = _checked(len(children))
                children.append({})
            state = children[state][character]
        whole.add(state)
    off = len(children)
    edges: list[tuple[tuple[Characters, int], ...]] = []
    for following in children:
        known = tuple((((ord(c), ord(c)),), state) for c, state in following.items())
        rest = characters.without(EVERY, characters.of("".join(following)))
        edges.append((*known, (rest, off)))
    edges.append(((EVERY, off),))
    return Automaton(tuple(edges), frozenset(range(off + 1)) - whole)


@dataclass
class _Builder:
    """Thompson's construction, whose empty steps are then taken out."""

    empty: list[list[int]] = field(default_factory=list)
    steps: list[list[tuple[Characters, int]]] = field(default_factory=list)

    def whole(self, pattern: Pattern) -> Automaton:
        start = self._state()
        end = self._add(pattern, start)
        # Those that something leads to, by a character: the others are only passed through.
        kept = {start: 0}
        for following in self.steps:
            for _, state in following:
                kept.setdefault(state, len(kept))
        reached = {state: self._closure(state) for state in kept}
        edges = [
            tuple((c, kept[target]) for passed in reached[state] for c, target in self.steps[passed]) for state in kept
        ]
        ends = frozenset(number for state, number in kept.items() if end in reached[state])
        return Automaton(tuple(edges), ends)

    def _add(self, pattern: Pattern, start: int) -> int:
        """Have the pattern read from a state on. Gives the state behind it."""
        match pattern:
            case Chars(found):
                end = self._state()
                self.steps[start].append((found, end))
                return end
            case Row(items):
                for item in items:
                    start = self._add(item, start)
                return start
            case AnyOf(options):
                end = self._state()
                for option in options:
                    self.empty[self._add(option, self._behind(start))].append(end)
                return end
            case Times(item, low, high):
                for _ in range(low):
                    start = self._add(item, start)
                if high is None:
                    loop = self._behind(start)
                    self.empty[self._add(item, loop)].append(loop)
                    return self._behind(loop)
                end = self._state()
                for _ in range(high - low):
                    self.empty[start].append(end)
                    start = self._add(item, self._behind(start))
                self.empty[start].append(end)
                return end

    def _state(self) -> int:
        self.empty.append([])
        self.steps.append([])
        return _checked(len(self.empty)) - 1

    def _behind(self, state: int) -> int:
        new = self._state()
        self.empty[state].append(new)
        return new

    def _closure(self, state: int) -> set[int]:
        if not self.empty[state]:
            return {state}
        found, todo = {state}, [state]
        while todo:
            for following in self.empty[todo.pop()]:
                if following not in found:
                    found.add(following)
                    todo.append(following)
        return found


def _checked(count: int) -> int:
    if count > MAX_STATES:
        raise ValueError("it is too large: ask for shorter texts, or for a simpler pattern")
    return count


State: TypeAlias = tuple[int, frozenset[int]]
"""How many characters are complete, where they are counted, and the states that an automaton may be in."""


class ByteAutomaton:
    """Of bytes. Knows from each state how far the nearest end is."""

    def __init__(self, automaton: Automaton, *, escaped: bool) -> None:
        """``escaped``: the text stands inside JSON's quotes."""
        self._edges: list[list[tuple[int, int, int]]] = [[] for _ in automaton.edges]
        self._behind: dict[tuple[Bytes, int], int] = {}
        for state, edges in enumerate(automaton.edges):
            for found, target in edges:
                for ranges in _written(found, escaped=escaped):
                    low, high = ranges[0]
                    self._edges[state].append((low, high, self._rest(ranges[1:], target)))
        self._far = self._distances(automaton.ends)
        self._steps: dict[tuple[frozenset[int], int], State | None] = {}
        self.start: State = (0, frozenset({0}))

    @property
    def is_empty(self) -> bool:
        """Whether there is no such text."""
        return self._far[0] >= FAR

    def step(self, state: State, byte: int) -> State | None:
        """Where a byte leads. None: it cannot come here."""
        key = (state[1], byte)
        if key in self._steps:
            return self._steps[key]
        after = frozenset(
            target
            for one in state[1]
            for low, high, target in self._edges[one]
            if low <= byte <= high and self._far[target] < FAR
        )
        if len(self._steps) >= MAX_REMEMBERED:
            self._steps.clear()
        found = self._steps[key] = (0, after) if after else None
        return found

    def distance(self, state: State) -> int:
        """The least number of bytes to an end."""
        return min(self._far[one] for one in state[1])

    def ending(self, state: State) -> bytes:
        """The fewest bytes to an end."""
        one = min(state[1], key=self._far.__getitem__)
        found = bytearray()
        while self._far[one]:
            byte, one = next((low, t) for low, _, t in self._edges[one] if self._far[t] == self._far[one] - 1)
            found.append(byte)
        return bytes(found)

    def _rest(self, ranges: Bytes, target: int) -> int:
        """The state from which these bytes lead to the target."""
        if not ranges:
            return target
        key = (ranges, target)
        if key not in self._behind:
            following = self._rest(ranges[1:], target)
            self._behind[key] = len(self._edges)
            self._edges.append([(*ranges[0], following)])
        return self._behind[key]

    def _distances(self, ends: Iterable[int]) -> list[int]:
        before: list[list[int]] = [[] for _ in self._edges]
        for state, edges in enumerate(self._edges):
            for _, _, target in edges:
                before[target].append(state)
        far = [FAR] * len(self._edges)
        todo = deque(ends)
        for end in todo:
            far[end] = 0
        while todo:
            state = todo.popleft()
            for earlier in before[state]:
                if far[earlier] == FAR:
                    far[earlier] = far[state] + 1
                    todo.append(earlier)
        return far


def _written(found: Characters, *, escaped: bool) -> Iterable[Bytes]:
    if not escaped:
        return encoded(found)
    plain = encoded(characters.without(found, ESCAPED))
    others = (ESCAPES[code] for low, high in characters.common(found, ESCAPED) for code in range(low, high + 1))
    return (*plain, *(tuple((byte, byte) for byte in text.encode()) for text in others))
