"""FunctionGemma's format: Gemma 3's turns, a developer turn that declares tools, and native calls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from langchain_gemma_jax.dialects.call_shapes import CallShape, NativeCalls
from langchain_gemma_jax.dialects.conversation.messages import Message, Tool
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter, RenderedPrompt
from langchain_gemma_jax.dialects.dialect import AS_USUAL, Dialect, RenderOptions, refuse_stray_results, results_after
from langchain_gemma_jax.dialects.native.declarations import declare, respond
from langchain_gemma_jax.dialects.native.native_parser import NativeParser
from langchain_gemma_jax.dialects.native.notation import Notation
from langchain_gemma_jax.errors import InputError

TURN, TURN_END = "<start_of_turn>", "<end_of_turn>"
RESPONSE = "<start_function_response>"
NOTATION = Notation(
    declaration=("<start_function_declaration>", "<end_function_declaration>"),
    call=("<start_function_call>", "<end_function_call>"),
    response=(RESPONSE, "<end_function_response>"),
    quote="<escape>",
    stops=(TURN_END, RESPONSE, "<eos>"),
    null="None",
    shows_nullable=False,
    shows_empty_descriptions=True,
    hides_keywords=True,
)

TRIGGER = "You are a model that can do function calling with the following functions"
"""The sentence that makes FunctionGemma call tools: it was trained with it, and other words have no effect."""


@dataclass(frozen=True)
class FunctionGemmaDialect(Dialect):
    """FunctionGemma's format. The model was trained on one request and one answer, not on conversations."""

    name: ClassVar[str] = "function_gemma"
    stops: ClassVar[tuple[str, ...]] = NOTATION.stops
    call_opener: ClassVar[str] = NOTATION.call[0]
    opener_is_control: ClassVar[bool] = True
    calls: ClassVar[CallShape] = NativeCalls(NOTATION)

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """See ``Dialect.render``. With tools, ``TRIGGER`` is put before them unless the system prompt has it."""
        self.check(messages, options)
        refuse_stray_results(messages)
        out = PromptWriter()
        out.control("<bos>")
        instructions = "".join(text.strip() for text in messages[0].texts) if messages[0].role == "system" else None
        if tools and TRIGGER not in (instructions or ""):
            instructions = f"{instructions}\n{TRIGGER}" if instructions else TRIGGER
        if instructions is not None:
            out.control(TURN)
            out.text(f"developer\n{instructions}")
            for tool in tools:
                declare(out, NOTATION, tool)
            _end_turn(out)
        system = out.cut() if instructions is not None else 0
        is_open = False  # the model's turn: it continues after results
        for index in range(1 if messages[0].role == "system" else 0, len(messages)):
            if messages[index].role != "tool":
                is_open = _message(out, messages, index, is_open=is_open)
        if options.generation_prompt and not is_open:
            out.control(TURN)
            out.text("model\n")
        return RenderedPrompt(tuple(out.pieces), system, tuple(out.marks), tuple(out.written), stops=self.stops)

    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> NativeParser:
        """See ``Dialect.parser``.

        Raises:
            InputError: ``in_thought`` is True, and this model has no thoughts.
        """
        if in_thought:
            raise InputError(f"in_thought: the format {self.name!r} has no thoughts.")
        return NativeParser(NOTATION, tools=tools)


def _message(out: PromptWriter, messages: Sequence[Message], index: int, *, is_open: bool) -> bool:
    """Write a message, with the results of its calls. Return True if it leaves the model's turn open."""
    message = messages[index]
    by_model = message.role == "assistant"
    if is_open and not by_model:
        _end_turn(out)
    if not (is_open and by_model):
        out.control(TURN)
        out.text({"assistant": "model\n", "system": "developer\n"}.get(message.role, "user\n"))
    start = out.cut()
    out.text("".join(text.strip() for text in message.texts))
    for call in message.calls:
        NOTATION.call_to(out, call.name, call.arguments)
    if by_model:
        out.wrote(index, start)
    if not message.calls:
        _end_turn(out)
        return False
    results = results_after(messages, index)
    for name, result in results:
        respond(out, NOTATION, name, result)
    if not results:
        out.control(RESPONSE)
    return True


def _end_turn(out: PromptWriter) -> None:
    out.control(TURN_END)
    out.text("\n")
    out.mark()
