"""``TemplateDialect``: the chat format of a model's own template, and the grammar of its turns of calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from langchain_gemma_jax.dialects.call_shapes import CallShape, FencedCalls, TurnGrammar
from langchain_gemma_jax.dialects.conversation.messages import Message, Tool, ToolResult
from langchain_gemma_jax.dialects.conversation.output_events import StreamParser
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece, RenderedPrompt, WrittenMessage
from langchain_gemma_jax.dialects.dialect import AS_USUAL, Dialect, RenderOptions, refuse_stray_results, results_after
from langchain_gemma_jax.dialects.fenced.fence_parser import OPENER, FenceParser
from langchain_gemma_jax.dialects.fenced.fenced_words import answered, called, declared
from langchain_gemma_jax.dialects.templated.call_forms import FENCED, CallForm, form_of, mark
from langchain_gemma_jax.dialects.templated.marked_parser import MarkedParser
from langchain_gemma_jax.dialects.templated.rendering import Guarded, render
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import NOTHING, Literal, Node, Repeat, either, sequence
from langchain_gemma_jax.grammar.schema.writing import JsonWriting
from langchain_gemma_jax.grammar.terminals import before, up_to


@dataclass(frozen=True)
class MarkedCalls(CallShape):
    """Calls in a given form. ``control`` says which of its marks are control tokens in the vocabulary."""

    form: CallForm
    control: frozenset[str]

    writing = JsonWriting()

    @property
    def opener_is_control(self) -> bool:
        return self.form.opener in self.control

    @property
    def free(self) -> Node | None:  # type: ignore[override]
        return None if self.opener_is_control else before(self.form.opener)

    @property
    def banned(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.form.opener,) if self.opener_is_control else ()

    @property
    def opening_line(self) -> str | None:  # type: ignore[override]
        return None if self.opener_is_control else self.form.opener

    def call(self, name: str, arguments: Node) -> Node:
        return self.form.call(name, arguments, self.control)

    def check_name(self, name: str) -> None:
        self.form.check_name(name)

    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        form, most = self.form, None if parallel else 1
        between = Literal(form.between) if form.between else NOTHING
        if form.bare:
            calls = Repeat(call, between, 1, most)
            return TurnGrammar(calls, either(before(form.opener), calls), None)
        opener, closer = mark(form.opener, self.control), mark(form.closer, self.control)
        start, end = (Literal(text) if text else NOTHING for text in form.around)
        if form.each_marked:
            first = sequence(start, call, end, closer)
            more = Repeat(sequence(between, opener, first), NOTHING) if parallel else NOTHING
            rest = sequence(first, more)
        else:
            rest = sequence(start, Repeat(call, between, 1, most), end, closer)
        whole = sequence(opener, rest)
        if self.opener_is_control:
            return TurnGrammar(whole, rest, form.opener)
        return TurnGrammar(whole, either(before(form.opener), sequence(up_to(form.opener), rest)), None)


_THOUGHT = ("<think>", "</think>")


@dataclass(frozen=True)
class TemplateDialect(Dialect):
    """The format of a template, with the control tokens of a model's vocabulary.

    Tools are declared, called and answered as in the template. If the template has no tools, they are declared in
    plain text and called in fenced blocks, as for the first Gemmas.
    """

    source: str = field(repr=False)
    control: frozenset[str] = field(repr=False)  # the control tokens of the vocabulary
    ends: tuple[str, ...]  # the control tokens that end an answer
    with_tools: str | None = field(default=None, repr=False)  # another template, for conversations with tools
    names: tuple[tuple[str, str], ...] = ()  # the template's variables for control tokens, such as bos_token

    name: ClassVar[str] = "template"
    thought_begins: ClassVar[str] = "\n"

    @property
    def form(self) -> CallForm | None:
        """The form in which calls are written. None: the template has no tools."""
        return form_of(self.with_tools or self.source)

    @property
    def stops(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.ends

    @property
    def thinks(self) -> bool:  # type: ignore[override]
        return "enable_thinking" in self.source

    @property
    def thought(self) -> tuple[str, str] | None:  # type: ignore[override]
        return _THOUGHT if self.control.issuperset(_THOUGHT) else None

    @property
    def call_opener(self) -> str:  # type: ignore[override]
        return OPENER if self.form is None else self.form.opener

    @property
    def opener_is_control(self) -> bool:  # type: ignore[override]
        return self.call_opener in self.control

    @property
    def calls(self) -> CallShape:  # type: ignore[override]
        return FencedCalls() if self.form is None else MarkedCalls(self.form, self.control)

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """See ``Dialect.render``. A system message that the template refuses goes before the first user's text."""
        self.check(messages, options)
        refuse_stray_results(messages)
        in_words = self.form is None
        if in_words:
            chat = _in_words(messages, tools)
            forms: list[dict[str, object]] = []
        else:
            chat, forms = _as_data(messages), [_tool(tool) for tool in tools]
        guarded = Guarded(self.control, [chat, forms])
        chat, forms = guarded.data
        source = self.with_tools if forms and self.with_tools else self.source
        names, system = dict(self.names), chat[0]["role"] == "system"

        def text(chat: Sequence[Mapping[str, object]], *, thinking: bool, prompt: bool) -> str:
            return render(source, chat, forms, names, add_generation_prompt=prompt, enable_thinking=thinking)

        try:
            whole = text(chat, thinking=options.thinking, prompt=options.generation_prompt)
        except InputError:
            if not system:
                raise
            chat, system = _merged_system(chat), False
            whole = text(chat, thinking=options.thinking, prompt=options.generation_prompt)
        pieces = tuple(guarded.pieces(whole))
        bare = text(chat, thinking=options.thinking, prompt=False)
        heads = {
            opened.removeprefix(bare)
            for thinking in (True, False)
            if (opened := text(chat, thinking=thinking, prompt=True)).startswith(bare)
        }
        head = tuple(guarded.pieces(min(heads, key=len))) if heads else ()
        answers = [number for number, message in enumerate(messages) if message.role == "assistant"]
        pieces, written = self._written(pieces, head, answers)
        marks = tuple(at + 1 for at, piece in enumerate(pieces) if piece.is_control and piece.text in self.ends)
        return RenderedPrompt(
            pieces,
            marks[0] if system and marks else 0,
            marks,
            written,
            in_thought=self._in_thought(pieces),
            stops=self.ends,
            thought=self.thought,
        )

    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> StreamParser:  # noqa: ARG002
        """See ``Dialect.parser``."""
        if self.form is None and "<think>" not in self.source:
            return FenceParser(self.ends)
        thought = _THOUGHT if "<think>" in self.source else None
        return MarkedParser(self.form or FENCED, self.control, self.ends, thought, in_thought=in_thought)

    def _written(
        self, pieces: tuple[PromptPiece, ...], head: tuple[PromptPiece, ...], answers: Sequence[int]
    ) -> tuple[tuple[PromptPiece, ...], tuple[WrittenMessage, ...]]:
        """Return the pieces, cut where the model's messages begin, and the places of those messages.

        A message of the model begins after the generation prompt (``head``) and ends at the end of its turn. Users'
        text cannot hold a control token, so it is never taken for a message of the model.
        """
        if not head or not head[0].is_control:
            return pieces, ()
        *first, last = head
        out: list[PromptPiece] = []
        found: list[tuple[int, int]] = []
        start: int | None = None
        for at, piece in enumerate(pieces):
            begun = list(pieces[max(0, at - len(first)) : at]) == first
            if start is None and begun and (piece == last or (not last.is_control and _begins(piece, last))):
                out.append(last)
                start = len(out)
                if rest := piece.text[len(last.text) :]:
                    out.append(PromptPiece(rest))
                continue
            if start is not None and piece.is_control and piece.text in self.ends:
                found.append((start, len(out)))
                start = None
            out.append(piece)
        if len(found) != len(answers):
            return tuple(out), ()
        return tuple(out), tuple(WrittenMessage(number, *place) for number, place in zip(answers, found, strict=True))

    def _in_thought(self, pieces: Sequence[PromptPiece]) -> bool:
        for piece in reversed(pieces):
            if piece.is_control and (piece.text == _THOUGHT[1] or piece.text in self.ends):
                return False
            if piece.text == _THOUGHT[0]:
                return True
        return False


def _begins(piece: PromptPiece, with_: PromptPiece) -> bool:
    return not piece.is_control and piece.text.startswith(with_.text)


def _as_data(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages as templates take them. Calls get new ids, in a form that all templates accept."""
    chat: list[dict[str, Any]] = []
    count = 0
    for index, message in enumerate(messages):
        one: dict[str, Any] = {"role": message.role, "content": "".join(message.texts)}
        if message.thinking:
            one["reasoning_content"] = message.thinking
        if message.calls:
            waiting = [f"call{count + number:05d}" for number in range(len(message.calls))]
            count += len(message.calls)
            one["tool_calls"] = [
                {"id": id_, "type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
                for id_, call in zip(waiting, message.calls, strict=True)
            ]
            chat.append(one)
            for id_, (name, result) in zip(waiting, results_after(messages, index), strict=False):
                chat.append({"role": "tool", "name": name, "content": _content(result), "tool_call_id": id_})
        elif message.result is None:
            chat.append(one)
    return chat


def _in_words(messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the messages, with tools, calls and results as plain text."""
    chat: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if message.result is not None:
            continue  # written together
        words = "".join(message.texts)
        if message.calls:
            chat.append({"role": "assistant", "content": called(words.strip(), message.calls)})
            if results := results_after(messages, index):
                chat.append({"role": "user", "content": answered(results)})
        else:
            chat.append({"role": message.role, "content": words})
    if tools:
        if chat[0]["role"] != "system":
            chat.insert(0, {"role": "system", "content": declared(tools)})
        else:
            chat[0]["content"] += "\n\n" + declared(tools)
    return chat


def _merged_system(chat: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with the system message put before the first user's text."""
    first, *rest = (dict(each) for each in chat)
    if rest and rest[0]["role"] == "user":
        rest[0]["content"] = f"{first['content']}\n\n{rest[0]['content']}"
        return rest
    return [{**first, "role": "user"}, *rest]


def _tool(tool: Tool) -> dict[str, object]:
    parameters = dict(tool.parameters) or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _content(result: ToolResult) -> str:
    value = {"error": result.value} if result.is_error else result.value
    if result.declares:  # templates declare tools at the beginning alone
        value = dict(result.payload) | {"tools": [cast("Json", _tool(tool)["function"]) for tool in result.declares]}
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise InputError(f"A tool's result is a JSON value, and {type(value).__name__} is none.")
