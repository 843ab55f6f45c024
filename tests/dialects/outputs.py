"""The output of models, as parsers are fed with it: text, and control tokens by their strings."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from langchain_gemma_jax.chat.answering.event_reader import EventReader
from langchain_gemma_jax.dialects import Event, Message, RenderedPrompt, StreamParser, ToolCall, merged
from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.models.tokenizer import StreamDecoder, Tokenizer
from tests.goldens_dialects import made_up

Output = list[tuple[str, bool]]

CONTROL: dict[str, list[str]] = {
    "gemma": ["<end_of_turn>", "<eos>", "<start_of_turn>", "<pad>"],
    "function_gemma": [
        *("<start_function_call>", "<end_function_call>", "<escape>", "<escape>", "<end_of_turn>", "<eos>"),
        *("<start_function_response>", "<start_function_declaration>", "<bos>"),
    ],
    "gemma4": [
        *("<|tool_call>", "<tool_call|>", '<|"|>', '<|"|>', "<turn|>", "<eos>", "<|tool_response>", "<|channel>"),
        *("<channel|>", "<|turn>", "<|tool>", "<|think|>"),
    ],
}
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (GemmaDialect(), FunctionGemmaDialect(), Gemma4Dialect())
}
SCRAPS = [
    *(
        "call:", "f", "get_it{", "call:f{", "a:", "b:1", ",", "}", "{", "[", "]", ":", "true", "nul", "-12.5e3",
        "1e999", "007",
    ),
    *(
        "thought\n",
        "thought",
        "\n",
        " ",
        '"',
        "\\",
        '\\"',
        "é",
        "空",
        "👩‍🚀",
        "x" * 20,
        '{"name": "f", "parameters": {',
    ),
    *(
        '"name"', '"parameters"', "```tool_call\n", "```", "`", "\n```", "\n\n", "NaN", "\\u00e9", "\\ud83d", "null",
        '"a"',
    ),
]  # fmt: skip


def fed(parser: StreamParser, output: Output) -> list[Event]:
    """The merged events of an output."""
    events: list[Event] = []
    for text, is_control in output:
        events += parser.feed(text, is_control)
    return merged([*events, *parser.finish()])


def fed_ids(parser: StreamParser, tokenizer: Tokenizer, ids: Sequence[int], *, at_once: int = 1) -> list[Event]:
    """The events of an output of these tokens, read as a chat model reads it, with nothing held back."""
    decoder, reader = StreamDecoder(tokenizer), EventReader(parser, tokenizer.control_name)
    decoded = [decoder.push(token) for token in ids]
    events: list[Event] = []
    for start in range(0, len(ids), at_once):
        texts = decoded[start : start + at_once]
        events += reader.take(ids[start : start + at_once], texts, "".join(texts))
    return events + reader.finish("".join([*decoded, decoder.finish()]))


def written(prompt: RenderedPrompt, message: int) -> Output:
    """Return the text that the model wrote as this message."""
    (place,) = [each for each in prompt.written if each.message == message]
    return [(piece.text, piece.is_control) for piece in prompt.pieces[place.start : place.end]]


def random_output(name: str, seed: int) -> Output:
    """Well formed in parts, so that the depths of a parser are reached too."""
    r = random.Random(f"{name}/{seed}")
    output: Output = []
    for _ in range(r.randrange(1, 5)):
        match r.randrange(4):
            case 0:
                output.append((made_up.text(r), False))
            case 1:
                output += [_scrap(r, name) for _ in range(r.randrange(8))]
            case _:
                call = _call(r, name)
                if r.random() < 0.4 and call:  # and hurt it
                    at = r.randrange(len(call))
                    call[at : at + r.randrange(2)] = [_scrap(r, name)]
                output += call
    return output


def _scrap(r: random.Random, name: str) -> tuple[str, bool]:
    is_control = r.random() < 0.3
    return r.choice(CONTROL[name] if is_control else SCRAPS), is_control


def _call(r: random.Random, name: str) -> Output:
    keys = made_up.KEYS + made_up.ODD_KEYS
    calls = [ToolCall(r.choice(made_up.TOOLS), made_up.members(r, keys)) for _ in range(r.choice([1, 1, 2]))]
    said = Message.assistant(made_up.text(r, 2), calls=calls, thinking=made_up.text(r) if name == "gemma4" else "")
    return written(DIALECTS[name].render([Message.user("Hi"), said]), 1)


TOKENS = re.compile("(" + "|".join(re.escape(token) for tokens in CONTROL.values() for token in tokens) + ")")


def output(text: str) -> Output:
    """With control strings as control tokens."""
    return [(part, bool(TOKENS.fullmatch(part))) for part in TOKENS.split(text) if part]


def read(text: str, parser: StreamParser | None = None) -> list[object]:
    return fed(parser or Gemma4Dialect().parser(), output(text))
