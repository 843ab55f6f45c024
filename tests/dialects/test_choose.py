from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_gemma_jax.dialects import NAMES, MediaPart, Message
from langchain_gemma_jax.dialects.choose import ModelFacts, dialect_for
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.media.block_forms import media_block
from langchain_gemma_jax.models.configuration.catalog import published

GEMMA3 = ("<bos>", "<start_of_turn>", "<end_of_turn>")
EMBEDDED = (
    *("<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>"),
    *("<|tool_response>", "<tool_response|>", '<|"|>', "<|channel>", "<channel|>", "<|think|>"),
)
GEMMA4 = ("<bos>", "<|turn>", "<turn|>", "<|tool_call>")


@pytest.mark.parametrize(
    ("name", "control", "expected"),
    [
        ("gemma-2b", GEMMA3, GemmaDialect()),
        ("gemma-2-9b", GEMMA3, GemmaDialect()),
        ("gemma-3-4b", GEMMA3, GemmaDialect()),
        ("functiongemma-270m", (*GEMMA3, "<start_function_call>"), FunctionGemmaDialect()),
        ("gemma-4-e2b", GEMMA4, Gemma4Dialect()),
        ("gemma-4-e4b", GEMMA4, Gemma4Dialect()),
        ("gemma-4-26b-a4b", GEMMA4, Gemma4Dialect(empty_thought=True)),
        ("gemma-4-31b", GEMMA4, Gemma4Dialect(empty_thought=True)),
        ("gemma-3-270m", EMBEDDED, Gemma4Dialect()),
    ],
)
def test_a_model_speaks_what_its_vocabulary_has_the_control_tokens_for(name, control, expected):
    config = published(name)
    facts = ModelFacts(config.generation, control, per_layer_input=config.per_layer_input is not None)
    assert dialect_for(facts) == expected


def test_a_template_of_the_first_kind_has_empty_lines_around_images():
    facts = ModelFacts("gemma4", GEMMA4, per_layer_input=True, images_apart=True)
    image, sound = (MediaPart(media_block(block, "a")) for block in (
        {"type": "image", "base64": "eA=="}, {"type": "audio", "base64": "eA=="},
    ))  # fmt: skip
    for apart, around in ((True, "\n\n"), (False, "")):
        dialect = dialect_for(replace(facts, images_apart=apart))
        prompt = dialect.render([Message.user(image, sound)])
        found = [(piece.text, piece.apart) for piece in prompt.pieces if piece.medium is not None]
        assert found == [("<|image|>", around), ("<|audio|>", "")]


def test_it_can_be_named_instead():
    facts = ModelFacts("gemma3", GEMMA3)
    assert [dialect_for(facts, name).name for name in NAMES] == list(NAMES)


def test_a_name_that_is_none_is_refused():
    with pytest.raises(InputError, match="gemma, function_gemma, gemma4, found 'chatml'"):
        dialect_for(ModelFacts("gemma3", GEMMA3), "chatml")


def test_a_vocabulary_without_turns_is_refused():
    with pytest.raises(UnsupportedModelError, match="tuned for conversations"):
        dialect_for(ModelFacts("gemma3", ("<bos>", "<eos>")))
