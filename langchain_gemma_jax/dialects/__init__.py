"""Chat formats: they turn conversations into prompts, and a model's output into events.

    dialect = dialect_for(ModelFacts("gemma4", tokenizer.control_tokens))
    prompt = dialect.render([Message.user("How is the weather in Paris?")], [get_weather])
    ids = prompt.encode(tokenizer).ids
    parser = dialect.parser(in_thought=prompt.in_thought)
    for text, is_control in output:
        events = parser.feed(text, is_control)

One file a format: ``gemma.py``, ``function_gemma.py``, ``gemma4.py``, and ``template_dialect.py`` for formats that a
model's own template defines. Below them are ``native``, which the two formats with native tools share, ``fenced`` for
the format without them, and ``conversation``, the input and output values. Plain Python, run in the caller's thread.
The room may import ``grammar``, the blocks of
``media`` and ``errors``.
"""

from langchain_gemma_jax.dialects.choose import NAMES, ModelFacts, dialect_for
from langchain_gemma_jax.dialects.conversation.messages import (
    MediaPart,
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
from langchain_gemma_jax.dialects.conversation.rendered_prompt import EncodedPrompt, Placed, PromptPiece, RenderedPrompt
from langchain_gemma_jax.dialects.dialect import Dialect, RenderOptions
from langchain_gemma_jax.dialects.template_dialect import TemplateDialect
from langchain_gemma_jax.dialects.turn_grammar import grammar_for, json_grammar
from langchain_gemma_jax.grammar.json_value import Json

__all__ = [
    "NAMES",
    "ArgumentsDelta",
    "CallBegin",
    "CallEnd",
    "Dialect",
    "EncodedPrompt",
    "Event",
    "Invalid",
    "Json",
    "MediaPart",
    "Message",
    "ModelFacts",
    "Placed",
    "PromptPiece",
    "RenderOptions",
    "RenderedPrompt",
    "StreamParser",
    "TemplateDialect",
    "Text",
    "TextDelta",
    "Thinking",
    "ThoughtDelta",
    "Tool",
    "ToolCall",
    "ToolResult",
    "dialect_for",
    "grammar_for",
    "json_grammar",
    "merged",
    "result_value",
]
