"""The conversations of the goldens as the package's own values."""

from __future__ import annotations

from langchain_gemma_jax.dialects import (
    Message,
    RenderedPrompt,
    RenderOptions,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from tests.goldens_dialects.corpus import Case, Said

DIALECTS: dict[str, Dialect] = {
    "gemma2": GemmaDialect(),
    "gemma3": GemmaDialect(),
    "function_gemma": FunctionGemmaDialect(),
    "gemma4": Gemma4Dialect(),
    "gemma4_large": Gemma4Dialect(empty_thought=True),
}


def render(name: str, case: Case) -> RenderedPrompt:
    """The conversation in a format."""
    return DIALECTS[name].render(
        [message(each) for each in case.messages], [Tool.of(each) for each in case.tools], RenderOptions(**case.options)
    )


def message(data: Said) -> Message:
    if data["role"] == "tool":
        return Message("tool", result=ToolResult(data["value"], data["id"], data["name"], data["error"]))
    thinking = (Thinking(data["thinking"]),) if data.get("thinking") else ()
    calls = tuple(ToolCall(**call) for call in data.get("calls", ()))
    return Message(data["role"], (*thinking, *map(Text, data["texts"])), calls)


def turns(*messages: Message, tools: tuple[Tool, ...] = ()) -> list[tuple[str, str]]:
    """Who says what, of a prompt that is well formed."""
    text = GemmaDialect().render(messages, tools).text.removeprefix("<bos>").removesuffix("<start_of_turn>model\n")
    said = []
    for turn in text.split("<start_of_turn>")[1:]:
        role, _, words = turn.partition("\n")
        assert words.endswith("<end_of_turn>\n")
        said.append((role, words.removesuffix("<end_of_turn>\n")))
    return said
