"""The forms in which families of models write calls, and the choice of one by the text of a template."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from langchain_gemma_jax.dialects.fenced.fence_parser import CLOSER, OPENER
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.nodes import NOTHING, Control, Literal, Node, sequence


@dataclass(frozen=True)
class CallForm:
    """The form of calls in an answer: the marks around them, and the names in their JSON."""

    name: str
    opener: str  # the beginning of calls; for bare JSON, the JSON's beginning
    closer: str = ""  # the end of calls; "": the end of the turn
    arguments: str = "arguments"  # the JSON's key for them
    around: tuple[str, str] = ("", "")  # text inside the marks, before and after the calls
    each_marked: bool = True  # each call has its own marks; otherwise the marks are around a list of calls
    between: str = ""  # text between two calls
    argument_mark: str = ""  # the mark between a name and its arguments, in forms where they are not one JSON object
    bare: bool = False  # the opener is a part of the JSON, at the beginning of the answer

    def check_name(self, name: str) -> None:
        """Check that this form can write a tool's name.

        Raises:
            InputError: the name cannot be written.
        """
        if self.argument_mark and (name != name.strip() or any(mark in name for mark in "[]{}\n")):
            raise InputError(
                f"A tool's name: expected one without brackets, and white space around it, found {name!r}."
            )

    def call(self, name: str, arguments: Node, control: Collection[str]) -> Node:
        """Return the grammar of one call, without the marks around it."""
        if self.argument_mark:
            return sequence(Literal(name), mark(self.argument_mark, control), arguments)
        quoted = json.dumps(name, ensure_ascii=False)
        return sequence(Literal(f'{{"name": {quoted}, "{self.arguments}": '), arguments, Literal("}"))


def mark(text: str, control: Collection[str]) -> Node:
    """Return the node of a mark: a control token if the vocabulary has it, otherwise text. "" gives nothing."""
    if not text:
        return NOTHING
    return Control(text) if text in control else Literal(text)


HERMES = CallForm("hermes", "<tool_call>", "</tool_call>", around=("\n", "\n"), between="\n")
LLAMA = CallForm("llama", '{"name": ', arguments="parameters", bare=True, between="\n")
MISTRAL = CallForm("mistral", "[TOOL_CALLS]", around=("[", "]"), each_marked=False, between=", ")
MISTRAL_NAMED = CallForm("mistral with names", "[TOOL_CALLS]", argument_mark="[ARGS]")
LISTED = CallForm("listed", "<|tool_call|>", around=("[", "]"), each_marked=False, between=", ")
LISTED_CLOSED = replace(LISTED, name="listed and closed", closer="<|/tool_call|>")
FENCED = CallForm("fenced", OPENER, CLOSER, arguments="parameters", each_marked=False, between="\n")


def form_of(template: str) -> CallForm | None:
    """Return the form of calls in a template. None: it has no calls, or in a form that is not supported here."""
    if "tools" not in template:
        return None
    if "[TOOL_CALLS]" in template:
        return MISTRAL_NAMED if "[ARGS]" in template else MISTRAL
    if "<tool_call>" in template:
        return HERMES
    if "<|tool_call|>" in template:
        return LISTED_CLOSED if "<|/tool_call|>" in template else LISTED
    if "<|python_tag|>" in template or ("ipython" in template and '"parameters"' in template):
        return LLAMA
    return None
