"""Grammars written in llguidance's language, a variant of Lark's."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_gemma_jax.grammar.nodes import (
    NOTHING,
    Control,
    Either,
    Grammar,
    Literal,
    Node,
    Repeat,
    Rule,
    SchemaJson,
    Sequence,
    Terminal,
)

SHORT = 40  # characters of a part that may be written twice, without a name


def lark(grammar: Grammar, control_ids: Mapping[str, int]) -> str:
    """Return a grammar as text for llguidance.

    Raises:
        KeyError: it has a control token that ``control_ids`` lacks.
    """
    return _Writer(grammar, control_ids).text()


class _Writer:
    def __init__(self, grammar: Grammar, control_ids: Mapping[str, int]) -> None:
        self._grammar, self._ids = grammar, control_ids
        self._leaves: dict[Terminal | SchemaJson, str] = {}
        self._rules: dict[str, str] = {}  # by the grammar's names for them
        self._lines: list[str] = []

    def text(self) -> str:
        if self._grammar.root is not None:
            self._lines.append(f"start: {self._node(self._grammar.root)}")
        done = 0
        while done < len(self._rules):
            todo = list(self._rules.items())[done:]
            done += len(todo)
            self._lines += [f"{name}: {self._node(self._grammar.rules[known])}" for known, name in todo]
        for leaf, name in self._leaves.items():
            if isinstance(leaf, SchemaJson):
                self._lines.append(f"{name}: %json {leaf.schema}")
                continue
            if leaf.lazy:
                self._lines.append(f"{name}[lazy]: {name.upper()}")
            self._lines.append(f"{name.upper()}: {leaf.expression}")
        return "\n".join(self._lines) + "\n"

    def _node(self, node: Node) -> str:
        match node:
            case Literal(text):
                return quoted(text)
            case Control(name):
                return f"<[{self._ids[name]}]>"
            case Sequence(items):
                return " ".join(map(self._part, items)) or '""'
            case Either(options):
                return " | ".join(map(self._node, options))
            case Repeat():
                return self._repeat(node)
            case Rule(name):
                return self._rules.setdefault(name, f"r{len(self._rules)}")
            case SchemaJson():
                return self._leaves.setdefault(node, f"t{len(self._leaves)}")
            case Terminal():
                name = self._leaves.setdefault(node, f"t{len(self._leaves)}")
                return name if node.lazy else name.upper()

    def _part(self, node: Node) -> str:
        written = self._node(node)
        return f"({written})" if isinstance(node, Either | Repeat | Sequence) else written

    def _named(self, written: str) -> str:
        """Return a name for a long part that is used in several places: written out, nested parts would double it."""
        if len(written) <= SHORT:
            return written
        name = f"x{len(self._lines)}"
        self._lines.append(f"{name}: {written}")
        return name

    def _repeat(self, node: Repeat) -> str:
        item = self._part(node.item)
        if node.high == 0:
            return '""'
        if node.between == NOTHING:
            return f"{item}{_count(node.low, node.high)}"
        several = item
        if node.high != 1:
            item = several = self._named(item)
            more = _count(max(0, node.low - 1), None if node.high is None else node.high - 1)
            several = f"{item} ({self._part(node.between)} {item}){more}"
        return several if node.low > 0 else f"({several})?"


def _count(low: int, high: int | None) -> str:
    return f"{{{low},{'' if high is None else high}}}"


def quoted(text: str) -> str:
    """Return a text as a literal in llguidance's language."""
    return f'"{text.translate(_ESCAPES)}"'


_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(32), 0x22, 0x5C, 0x7F, 0x85, 0x2028, 0x2029)}
