"""The ways in which families of models write calls, told by what their templates show."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from langchain_gemma_jax.dialects.fenced.fence_parser import CLOSER, OPENER
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.nodes import NOTHING, Control, Literal, Node, sequence


@dataclass(frozen=True)
class CallForm:
    """How calls stand in an answer: between which marks, and with which names in their JSON."""

    name: str
    opener: str  # what begins calls; for bare JSON, how that begins
    closer: str = ""  # what ends them; "": the end of the turn
    arguments: str = "arguments"  # what the JSON calls them
    around: tuple[str, str] = ("", "")  # text inside of the marks
    each_marked: bool = True  # each call has marks of its own; else they are one list
    between: str = ""  # text between two calls
    argument_mark: str = ""  # what stands between a name and its arguments, where they are no JSON object together
    bare: bool = False  # the opener is a part of the JSON, at the beginning of the answer

    def check_name(self, name: str) -> None:
        """See that a tool's name can be written.

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
        said = json.dumps(name, ensure_ascii=False)
        return sequence(Literal(f'{{"name": {said}, "{self.arguments}": '), arguments, Literal("}"))


def mark(text: str, control: Collection[str]) -> Node:
    """Return the node of a mark: a control token where the vocabulary has it as one. No text: nothing."""
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
    """Return how calls are written, by the text of a template. None: it shows no calls, or in no way known here."""
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
