"""Chat formats: conversations to prompts, and what a model writes to events.

    dialect = dialect_for(ModelFacts("gemma4", tokenizer.control_tokens))
    prompt = dialect.render([Message.user("How is the weather in Paris?")], [get_weather])
    ids = prompt.encode(tokenizer).ids
    parser = dialect.parser(in_thought=prompt.in_thought)
    for text, is_control in output:
        events = parser.feed(text, is_control)

One file a format: ``gemma.py``, ``function_gemma.py``, ``gemma4.py``. ``notation.py``, ``declarations.py`` and
``native_call.py`` hold what the two with native tools have in common.
"""

from langchain_gemma_jax.dialects.choose import NAMES, ModelFacts, dialect_for
from langchain_gemma_jax.dialects.conversation.messages import (
    Message,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    result_value,
)
from langchain_gemma_jax.dialects.conversation.output_events import (
    ArgumentsDelta,
    CallBegin,
    CallEnd,
    Event,
    Invalid,
    StreamParser,
    TextDelta,
    ThoughtDelta,
    merged,
)
from langchain_gemma_jax.dialects.conversation.rendered_prompt import Encoded, Piece, Prompt
from langchain_gemma_jax.dialects.dialect import Dialect, RenderOptions
from langchain_gemma_jax.dialects.tokens import TokenParser
from langchain_gemma_jax.dialects.turn_grammar import grammar_for, json_grammar
from langchain_gemma_jax.grammar.json_value import Json

__all__ = [
    "NAMES",
    "ArgumentsDelta",
    "CallBegin",
    "CallEnd",
    "Dialect",
    "Encoded",
    "Event",
    "Invalid",
    "Json",
    "Message",
    "ModelFacts",
    "Piece",
    "Prompt",
    "RenderOptions",
    "StreamParser",
    "Text",
    "TextDelta",
    "Thinking",
    "ThoughtDelta",
    "TokenParser",
    "Tool",
    "ToolCall",
    "ToolResult",
    "dialect_for",
    "grammar_for",
    "json_grammar",
    "merged",
    "result_value",
]
