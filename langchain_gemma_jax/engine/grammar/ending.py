"""Where in its grammar a text is, and the shortest way to end it.

llguidance says which tokens may come next, and not how a text that has begun can be ended. That is
what this is for: when there is no room for more, an answer has to become whole in few tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.grammar.automaton import State
from langchain_gemma_jax.engine.grammar.leaves import Before, Leaf, Machine, UpTo, machine
from langchain_gemma_jax.engine.grammar.nodes import (
    Control,
    Either,
    Grammar,
    Literal,
    Node,
    Repeat,
    Rule,
    Sequence,
    sequence,
)

Pieces: TypeAlias = tuple[bytes | str, ...]
"""Text as bytes, control tokens by their names."""


@dataclass(frozen=True, eq=False)
class _Frame:
    """What comes behind the present place: the rest of a sequence, or of a repetition, and then what is behind that."""

    node: Sequence | Repeat
    done: int
    behind: _Frame | None
    cost: int  # of all of it


@dataclass(frozen=True, eq=False)
class _InLiteral:
    """One way to read the text so far: these bytes come next. None, where it is a control token that does."""

    node: Literal | Control
    rest: bytes
    behind: _Frame | None
    cost: int


@dataclass(frozen=True, eq=False)
class _InLeaf:
    """Another way: inside of a leaf."""

    node: Leaf
    state: State
    behind: _Frame | None
    cost: int


_Thread: TypeAlias = _InLiteral | _InLeaf


@dataclass(frozen=True, eq=False)
class Place:
    """A place in a grammar. Values: one can always go on from an earlier one."""

    threads: tuple[_Thread, ...]
    complete: bool  # the text may end here

    @property
    def possible(self) -> bool:
        return self.complete or bool(self.threads)


class Outline:
    """A grammar as it is followed byte by byte."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        # By the identities of nodes: to compare them by what they say takes as long as they are large.
        self._costs: dict[int, int] = {}
        self._machines: dict[int, Machine] = {}
        self._more: dict[int, Node] = {}  # what a repetition goes on with
        self._kept: list[Node] = []  # so that identities stay apart
        for node in grammar.rules.values():  # those that others are made of come first
            self.cost_of(node)
        self.start = Place((), complete=True) if grammar.root is None else self._entered(grammar.root)

    def cost(self, place: Place) -> int:
        """How many bytes and control tokens the shortest ending has: it is of no more tokens than that."""
        return 0 if place.complete else min(thread.cost for thread in place.threads)

    def is_free(self, place: Place) -> bool:
        """Whether the text is free here."""
        return bool(place.threads) and all(isinstance(thread.node, Before | UpTo) for thread in place.threads)

    def ending(self, place: Place) -> Pieces:
        """The shortest ending."""
        if place.complete:
            return ()
        thread = min(place.threads, key=lambda each: each.cost)
        found: list[bytes | str] = []
        if isinstance(thread, _InLeaf):
            found.append(self.machine(thread.node).ending(thread.state))
        else:
            found.append(thread.node.name if isinstance(thread.node, Control) else thread.rest)
        frame = thread.behind
        while frame is not None:
            self._end_frame(frame, found)
            frame = frame.behind
        return _joined(found)

    def text(self, place: Place, data: bytes) -> Place:
        """Where some bytes lead. Nowhere, if they cannot come here: it is not ``possible``."""
        for byte in data:
            step = _Step(self)
            for thread in place.threads:
                self._advance(thread, byte, step)
            place = step.place()
        return place

    def control(self, place: Place, name: str) -> Place:
        """Where a control token leads."""
        step = _Step(self)
        for thread in place.threads:
            if isinstance(thread.node, Control) and thread.node.name == name:
                step.leave(thread.behind)
        return step.place()

    def _advance(self, thread: _Thread, byte: int, step: _Step) -> None:
        if isinstance(thread, _InLeaf):
            if after := self.machine(thread.node).step(thread.state, byte):
                step.read(thread.node, after, thread.behind)
        elif thread.rest and thread.rest[0] == byte:
            if len(thread.rest) == 1:
                step.leave(thread.behind)
            else:
                step.add(_InLiteral(thread.node, thread.rest[1:], thread.behind, thread.cost - 1))

    def _entered(self, node: Node) -> Place:
        step = _Step(self)
        step.enter(node, None)
        return step.place()

    def rule(self, name: str) -> Node:
        return self._rules[name]

    def machine(self, leaf: Leaf) -> Machine:
        """How a leaf is read."""
        found = self._machines.get(id(leaf))
        if found is None:
            found = self._machines[id(leaf)] = machine(leaf)
            self._kept.append(leaf)
        return found

    def more(self, node: Repeat) -> Node:
        """What a repetition goes on with."""
        found = self._more.get(id(node))
        if found is None:
            found = self._more[id(node)] = sequence(node.between, node.item)
            self._kept += [node, found]
        return found

    def cost_of(self, node: Node) -> int:
        """The bytes and control tokens of the shortest text that fits."""
        found = self._costs.get(id(node))
        if found is None:
            found = self._costs[id(node)] = self._cost(node)
            self._kept.append(node)
        return found

    def _cost(self, node: Node) -> int:
        match node:
            case Literal(text):
                return len(text.encode())
            case Control():
                return 1
            case Rule(name):
                return self.cost_of(self._rules[name])
            case Sequence(items):
                return sum(map(self.cost_of, items))
            case Either(options):
                return min(map(self.cost_of, options))
            case Repeat(item, between, low):
                return low * self.cost_of(item) + max(0, low - 1) * self.cost_of(between)
            case Leaf():
                return self.machine(node).distance(self.machine(node).start)
        raise TypeError(f"expected a part of a grammar, found {node!r}")

    def _shortest(self, nodes: tuple[Node, ...], out: list[bytes | str]) -> None:
        todo = list(reversed(nodes))
        while todo:
            node = todo.pop()
            match node:
                case Literal(text):
                    out.append(text.encode())
                case Control(name):
                    out.append(name)
                case Rule(name):
                    todo.append(self._rules[name])
                case Sequence(items):
                    todo.extend(reversed(items))
                case Either(options):
                    todo.append(min(options, key=self.cost_of))
                case Repeat(item, between, low):
                    todo.extend((item, *(between, item) * (low - 1))[: 2 * low])
                case Leaf():
                    out.append(self.machine(node).ending(self.machine(node).start))

    def _end_frame(self, frame: _Frame, out: list[bytes | str]) -> None:
        match frame.node:
            case Sequence(items):
                self._shortest(items[frame.done :], out)
            case Repeat(item, between, low):
                self._shortest((between, item) * (low - frame.done), out)


_Entry: TypeAlias = tuple[Node, _Frame | None]


class _Step:
    """Collects the threads behind one byte or control token. What several of them come to is entered once."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._threads: dict[tuple[int, bytes | State, int], _Thread] = {}
        self._left: dict[int, _Frame] = {}
        self._complete = False

    def place(self) -> Place:
        return Place(tuple(self._threads.values()), self._complete)

    def add(self, thread: _Thread) -> None:
        place = thread.state if isinstance(thread, _InLeaf) else thread.rest
        self._threads[id(thread.node), place, id(thread.behind)] = thread

    def enter(self, node: Node, behind: _Frame | None) -> None:
        """Go to where a node begins."""
        todo = [(node, behind)]  # as long as a tool has parameters: too deep for Python's own stack
        while todo:
            todo += self._enter(*todo.pop())

    def read(self, leaf: Leaf, state: State, behind: _Frame | None) -> None:
        """Inside of a leaf, or behind it."""
        distance = self._outline.machine(leaf).distance(state)
        if not (distance == 0 and leaf.lazy):
            self.add(_InLeaf(leaf, state, behind, distance + (0 if behind is None else behind.cost)))
        if distance == 0:
            self.leave(behind)

    def leave(self, frame: _Frame | None) -> None:
        """Something is complete: go on with what is behind it."""
        for node, behind in self._leave(frame):
            self.enter(node, behind)

    def _enter(self, node: Node, behind: _Frame | None) -> list[_Entry]:
        after = 0 if behind is None else behind.cost
        match node:
            case Literal(text):
                data = text.encode()
                self.add(_InLiteral(node, data, behind, len(data) + after))
            case Control():
                self.add(_InLiteral(node, b"", behind, 1 + after))
            case Leaf():
                start = self._outline.machine(node).start
                distance = self._outline.machine(node).distance(start)
                self.add(_InLeaf(node, start, behind, distance + after))
                return self._leave(behind) if distance == 0 else []
            case Rule(name):
                return [(self._outline.rule(name), behind)]
            case Either(options):
                return [(option, behind) for option in options]
            case Sequence() | Repeat():
                return self._go_on(node, 0, behind)
        return []

    def _leave(self, frame: _Frame | None) -> list[_Entry]:
        if frame is None:
            self._complete = True
        elif id(frame) not in self._left:
            self._left[id(frame)] = frame
            return self._go_on(frame.node, frame.done, frame.behind)
        return []

    def _go_on(self, node: Sequence | Repeat, done: int, behind: _Frame | None) -> list[_Entry]:
        """The next item, and what is behind it if there need be none."""
        outline, after = self._outline, 0 if behind is None else behind.cost
        if isinstance(node, Sequence):
            if done == len(node.items):
                return self._leave(behind)
            if done == len(node.items) - 1:  # the last: nothing to come back for
                return [(node.items[done], behind)]
            rest = sum(map(outline.cost_of, node.items[done + 1 :]))
            return [(node.items[done], _Frame(node, done + 1, behind, rest + after))]
        found: list[_Entry] = self._leave(behind) if done >= node.low else []
        if node.high is None or done < node.high:
            each = outline.cost_of(node.item) + outline.cost_of(node.between)
            frame = _Frame(node, done + 1, behind, max(0, node.low - done - 1) * each + after)
            found.append((outline.more(node) if done else node.item, frame))
        return found


def _joined(pieces: list[bytes | str]) -> Pieces:
    found: list[bytes | str] = []
    for piece in pieces:
        if isinstance(piece, bytes) and found and isinstance(last := found[-1], bytes):
            found[-1] = last + piece
        elif piece:
            found.append(piece)
    return tuple(found)
