"""Gemma 4's format: a system role, native tools, and a channel for thoughts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from langchain_gemma_jax.dialects.call_shapes import CallShape, NativeCalls
from langchain_gemma_jax.dialects.conversation.messages import MediaPart, Message, Tool
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter, RenderedPrompt
from langchain_gemma_jax.dialects.dialect import AS_USUAL, Dialect, RenderOptions, refuse_stray_results, results_after
from langchain_gemma_jax.dialects.native.declarations import declare, respond
from langchain_gemma_jax.dialects.native.native_parser import NativeParser
from langchain_gemma_jax.dialects.native.notation import Notation

TURN, TURN_END = "<|turn>", "<turn|>"
CHANNEL, CHANNEL_END = "<|channel>", "<channel|>"
RESPONSE = "<|tool_response>"
NOTATION = Notation(
    declaration=("<|tool>", "<tool|>"),
    call=("<|tool_call>", "<tool_call|>"),
    response=(RESPONSE, "<tool_response|>"),
    quote='<|"|>',
    thought=(CHANNEL, CHANNEL_END),
    stops=(TURN_END, RESPONSE, "<eos>"),
)


@dataclass(frozen=True)
class Gemma4Dialect(Dialect):
    """The format of Gemma 4 and of the embedded models.

    ``empty_thought``: with thinking off, the answer begins with an empty thought. This is true for 12B, 26B-A4B and
    31B, and not for E2B and E4B. ``images_apart``: there are empty lines around images, as in the first published
    template, but not around sounds.
    """

    name: ClassVar[str] = "gemma4"
    thinks: ClassVar[bool] = True
    stops: ClassVar[tuple[str, ...]] = NOTATION.stops
    call_opener: ClassVar[str] = NOTATION.call[0]
    opener_is_control: ClassVar[bool] = True
    calls: ClassVar[CallShape] = NativeCalls(NOTATION)
    thought: ClassVar[tuple[str, str] | None] = NOTATION.thought
    media_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"image": "<|image|>", "file": "<|image|>", "audio": "<|audio|>"}
    )

    empty_thought: bool = False
    images_apart: bool = False

    def show(self, out: PromptWriter, part: MediaPart) -> None:
        """See ``Dialect.show``."""
        kind = part.block.kind
        out.medium(part, self.media_names[kind], "\n\n" if self.images_apart and kind != "audio" else "")

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """See ``Dialect.render``."""
        self.check(messages, options)
        refuse_stray_results(messages)
        out = PromptWriter()
        out.control("<bos>")
        system = _system(out, messages, tools, options)
        turns = _Turns(out, messages, options, self.show)
        for index in range(1 if messages[0].role == "system" else 0, len(messages)):
            turns.add(index)
        in_thought = self._generation_prompt(out, turns, options) if options.generation_prompt else False
        return RenderedPrompt(
            tuple(out.pieces),
            system,
            tuple(out.marks),
            tuple(out.written),
            in_thought,
            self.stops,
            thought=NOTATION.thought,
        )

    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> NativeParser:
        """See ``Dialect.parser``."""
        return NativeParser(NOTATION, in_thought=in_thought, tools=tools)

    def _generation_prompt(self, out: PromptWriter, turns: _Turns, options: RenderOptions) -> bool:
        """Write the beginning of the model's turn. Return True if it begins a thought."""
        if turns.calling:
            return False
        if turns.answered:
            if options.thinking:
                out.control(CHANNEL)
                out.text("thought\n")
            return options.thinking
        out.control(TURN)
        out.text("model\n")
        if self.empty_thought and not options.thinking:
            out.control(CHANNEL)
            out.text("thought\n")
            out.control(CHANNEL_END)
        return False


def _system(out: PromptWriter, messages: Sequence[Message], tools: Sequence[Tool], options: RenderOptions) -> int:
    """Write the system turn, if one is needed. Return the number of pieces up to its end."""
    has_system = messages[0].role == "system"
    if not (has_system or tools or options.thinking):
        return 0
    out.control(TURN)
    out.text("system\n")
    if options.thinking:
        out.control("<|think|>")
        out.text("\n")
    if has_system:
        texts = messages[0].texts
        # The template puts a space after each of several parts, and trims a single one.
        out.text(texts[0].strip() if len(texts) == 1 else "".join(f"{text.strip()} " for text in texts))
    for tool in tools:
        declare(out, NOTATION, tool)
    out.control(TURN_END)
    out.text("\n")
    out.mark()
    return len(out.pieces)


class _Turns:
    """Writes the messages after the system turn. One turn of the model can be several messages."""

    def __init__(
        self,
        out: PromptWriter,
        messages: Sequence[Message],
        options: RenderOptions,
        show: Callable[[PromptWriter, MediaPart], None],
    ) -> None:
        self._out, self._show = out, show
        self._messages = messages
        self._options = options
        self._last_user = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
        self._following = _next_roles(messages)
        self._before: str | None = None  # the role of the message before, results aside
        self.calling = False  # the last message called tools, and has no results yet
        self.answered = False  # the last message called tools, and has results

    def add(self, index: int) -> None:
        message = self._messages[index]
        if message.role == "tool":
            return  # written together with the calls
        self.calling = self.answered = False
        by_model = message.role == "assistant"
        if not (by_model and self._before == "assistant"):
            self._out.control(TURN)
            self._out.text("model\n" if by_model else f"{message.role}\n")
        if by_model:
            said_last = self._model(index)
        else:
            for part in message.content:
                if isinstance(part, MediaPart):
                    self._show(self._out, part)
                else:
                    self._out.text(part.text.strip())
            said_last = True
        self._close(index, said_last=said_last)
        self._before = message.role

    def _model(self, index: int) -> bool:
        """Write a message of the model. Return True if it ends with text."""
        out, message = self._out, self._messages[index]
        words = "".join(_without_thoughts(text) for text in message.texts)
        shows_thoughts = index > self._last_user or (self._options.keep_thoughts and bool(message.calls))
        start, in_thought = out.cut(), None
        if shows_thoughts and message.thinking:
            out.control(CHANNEL)
            out.text("thought\n")
            in_thought = out.cut()
            out.text(f"{message.thinking}\n")
            out.control(CHANNEL_END)
        hides_thoughts = bool(message.thinking) and not shows_thoughts  # the generated ids would bring them back
        words_last = self._options.text_after_calls or not message.calls
        if not words_last:
            out.text(words)
        for call in message.calls:
            NOTATION.call_to(out, call.name, call.arguments)
        results = []
        if message.calls:
            if not hides_thoughts:
                out.wrote(index, start, thoughts=shows_thoughts, in_thought=in_thought)
            results = results_after(self._messages, index)
            for name, result in results:
                respond(out, NOTATION, name, result)
                for part in result.media:
                    self._show(out, part)
            start, in_thought = out.cut(), None
        if words_last:
            out.text(words)
            if not hides_thoughts:
                out.wrote(index, start, thoughts=shows_thoughts, in_thought=in_thought)
        self.calling, self.answered = bool(message.calls) and not results, bool(results)
        return words_last and bool(words.strip())

    def _close(self, index: int, *, said_last: bool) -> None:
        """End the turn, unless the model continues it."""
        following = self._following[index]
        by_model = self._messages[index].role == "assistant"
        if self.calling:
            self._out.control(RESPONSE)
        elif by_model and following == "assistant":
            return
        elif not self.answered or said_last or following is not None:
            self._out.control(TURN_END)
            self._out.text("\n")
            self._out.mark()


def _next_roles(messages: Sequence[Message]) -> list[str | None]:
    """Return, for each message, the role of the next message that is not a result."""
    found: list[str | None] = []
    role: str | None = None
    for message in reversed(messages):
        found.append(role)
        role = role if message.role == "tool" else message.role
    return found[::-1]


def _without_thoughts(text: str) -> str:
    """Return an answer's text without the thoughts that were stored in it."""
    parts = text.split(CHANNEL_END)
    return "".join(part.partition(CHANNEL)[0] for part in parts).strip()
