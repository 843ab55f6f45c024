"""The nodes of a grammar, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Literal:
    """A fixed text that is not empty."""

    text: str


@dataclass(frozen=True)
class Control:
    """One control token, by its name."""

    name: str


@dataclass(frozen=True)
class Terminal:
    """A text without further structure, as an expression of llguidance's: see ``terminals``."""

    expression: str
    least: int = 0  # the fewest characters that it can have
    lazy: bool = False  # it ends as soon as it can


@dataclass(frozen=True)
class SchemaJson:
    """JSON of a schema that llguidance compiles itself."""

    schema: str
    least: int = 0  # characters that it has at least


@dataclass(frozen=True)
class Sequence:
    """Several nodes, one after the other. An empty sequence is the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    """One of several nodes, of which there is at least one."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """One node repeated ``low`` to ``high`` times, with ``between`` in between."""

    item: Node
    between: Node
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class Rule:
    """A reference to the grammar's rule of this name."""

    name: str


Node: TypeAlias = Literal | Control | Terminal | SchemaJson | Sequence | Either | Repeat | Rule

NOTHING = Sequence(())


@dataclass(frozen=True)
class Unopened:
    """Texts with which the grammar begins too, without the opener: at the beginning, and behind a control token."""

    names: tuple[str, ...]  # such as "call:ring"
    then: str  # one of these characters has to follow
    after: str | None = None  # the control token; None: only at the beginning
    at_once: bool = True  # False: not at the beginning, as the text begins inside of what that token ends


@dataclass(frozen=True)
class Grammar:
    """A grammar that restricts a generated text. ``dialects.json_grammar`` and ``dialects.grammar_for`` make them.

    Two are equal if their ``key`` is: it is a digest of the schemas, tools and options that they were made from.
    """

    key: str
    root: Node | None = field(repr=False, compare=False)  # None: the text is free
    rules: Mapping[str, Node] = field(repr=False, compare=False)  # not recursive
    opener: str | None = None  # the text is free until this control token; the grammar is for what follows it
    unopened: Unopened | None = None  # texts that stand for the opener where a model has lost it
    free_until: str | None = None  # the grammar covers the whole text, but allows anything until a line begins so
    banned: tuple[str, ...] = ()  # control tokens that are never allowed
    unpromised: tuple[str, ...] = ()  # requirements that the grammar leaves out

    def __post_init__(self) -> None:
        if self.root is None and self.opener is not None:
            raise ValueError("a grammar with an opener needs a root, for the text after the opener")

    def shortest(self) -> int:
        """Return the approximate number of characters and control tokens in the shortest text."""
        known: dict[str, int] = {}
        for name, node in self.rules.items():  # a rule comes after those that it refers to
            known[name] = _least(node, known)
        return 0 if self.root is None else _least(self.root, known)


def sequence(*items: Node) -> Node:
    """Return the items one after the other, in as few nodes as possible."""
    flat: list[Node] = []
    for item in items:
        for part in item.items if isinstance(item, Sequence) else (item,):
            last = flat[-1] if flat else None
            if isinstance(part, Literal) and isinstance(last, Literal):
                flat[-1] = Literal(last.text + part.text)
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def either(*options: Node) -> Node:
    """Return a node that is one of the options."""
    found = tuple(dict.fromkeys(options))
    return found[0] if len(found) == 1 else Either(found)


def maybe(item: Node) -> Node:
    """Return a node that is the item, or nothing."""
    return either(item, NOTHING)


def _least(node: Node, known: Mapping[str, int]) -> int:
    match node:
        case Literal(text):
            return len(text)
        case Control():
            return 1
        case Terminal() | SchemaJson():
            return node.least
        case Rule(name):
            return known[name]
        case Sequence(items):
            return sum(_least(item, known) for item in items)
        case Either(options):
            return min(_least(option, known) for option in options)
        case Repeat(item, between, low):
            return low * _least(item, known) + max(0, low - 1) * _least(between, known)
