"""The profile tells LangChain what a model can do."""

from __future__ import annotations

import json

import pytest
from langchain_core.language_models import ModelProfile

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.dialects import Message
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect

NOT_OURS = {
    "status": "a model on a disk does not age; its publisher's catalog says what is recommended",
    "release_date": "neither a checkpoint nor a GGUF file says when it was published",
    "last_updated": "likewise",
    "reasoning_effort_levels": "a Gemma thinks or does not: `thinking`",
    "reasoning_effort_default": "likewise",
}


@pytest.mark.parametrize(
    ("model", "context", "reasons"),
    [
        ("google/gemma-3-1b-it", 32768, False),
        ("google/gemma-3-12b-it", 131072, False),
        ("google/gemma-2-2b-it", 8192, False),
        ("google/gemma-4-E2B-it", 131072, True),
        ("google/gemma-4-26b-a4b-it", 262144, True),
        ("./models/functiongemma-270m-it/", 32768, False),
    ],
)
def test_published_sizes_have_profiles(model, context, reasons):
    profile = ChatGemmaJax(model=model).profile
    assert profile["max_input_tokens"] == context - 1
    assert profile["reasoning_output"] is reasons
    assert profile["tool_calling"] is True
    assert ChatGemmaJax(model=model, max_context=100).profile["max_input_tokens"] == 99


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("google/gemma-3-4b-it", True),
        ("google/gemma-4-31b-it", True),
        ("google/gemma-3-1b-it", False),
        ("google/gemma-3-270m-it", False),
        ("functiongemma-270m-it", False),
        ("ollama:gemma3:4b", False),
        ("./gemma-3-4b-it-Q4_K_M.gguf", None),  # GGUF files that are not here: what they come with is not known
        ("google/gemma-3-4b-it-qat-q4_0-gguf:Q4_0", None),
        ("google/gemma-3-1b-it-GGUF:Q4_0", False),
        ("sprout-m", False),
    ],
)
def test_profiles_say_who_sees(model, sees, tmp_path):
    profile = ChatGemmaJax(model=model).profile
    kinds = ("image_inputs", "image_url_inputs", "image_tool_message", "pdf_inputs", "pdf_tool_message", "attachment")
    assert {profile.get(kind) for kind in kinds} == {sees}
    assert profile.get("audio_inputs") is (None if sees is None else False)
    assert profile["video_inputs"] is False
    for config, expected in (
        ({"model_type": "gemma3", "vision_config": {}}, (True, False)),
        ({"model_type": "gemma3"}, (False, False)),
        ({"model_type": "gemma3_text", "vision_config": {}}, (False, False)),
        ({"model_type": "gemma4", "vision_config": {}, "audio_config": {}}, (True, True)),
        ({"model_type": "gemma4_unified", "vision_config": {}, "audio_config": {}}, (True, True)),
        ({"model_type": "gemma4_unified", "vision_config": {}, "audio_config": None}, (True, False)),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        profile = ChatGemmaJax(model=str(tmp_path)).profile
        assert (profile["image_inputs"], profile["audio_inputs"]) == expected
    both = ChatGemmaJax(model="auto", route={"light": "google/gemma-3-1b-it", "heavy": "google/gemma-3-4b-it"})
    assert both.profile["image_inputs"] is False, "nobody knows which of them answers"


def test_others_have_what_is_known_of_them():
    assert "max_input_tokens" not in ChatGemmaJax(model="./mine").profile
    assert ChatGemmaJax(model="./mine", max_context=100).profile["max_input_tokens"] == 99


def test_the_profile_is_what_all_of_them_can():
    both = ChatGemmaJax(route={"light": "google/gemma-3-270m-it", "heavy": "google/gemma-3-4b-it"})
    light, heavy = (ChatGemmaJax(model=model) for model in both.route.values())
    assert both.profile["max_input_tokens"] == light.profile["max_input_tokens"] < heavy.profile["max_input_tokens"]
    assert both.profile["name"] == "auto"
    unknown = ChatGemmaJax(route={"light": "./own", "heavy": "google/gemma-4-31b-it"}).profile
    assert "max_input_tokens" not in unknown
    assert not unknown["reasoning_output"]


def test_every_field_of_a_profile_is_filled_or_not_ours():
    filled = set(ChatGemmaJax(model="google/gemma-4-E2B-it").profile)
    fields = set(ModelProfile.__annotations__)
    assert filled <= fields, "LangChain warns of others"
    assert fields - filled == set(NOT_OURS) & fields


def test_a_later_system_message_stays_where_it_is():
    """As the profile says of every Gemma, and of none with a template of its own."""
    later = "mid_conversation_system_messages"
    if later not in ModelProfile.__annotations__:
        pytest.skip("a newer langchain-core has this field")
    for name in ("sprout-s", "google/gemma-3-1b-it", "functiongemma-270m-it"):
        assert ChatGemmaJax(model=name).profile[later] is True
    assert later not in ChatGemmaJax(model="torchax:./qwen").profile
    mixed = {"light": "torchax:./qwen", "heavy": "google/gemma-4-31b-it"}
    assert ChatGemmaJax(route=mixed).profile.get(later, False) is False
    for dialect in (GemmaDialect(), FunctionGemmaDialect(), Gemma4Dialect()):
        said = [Message.system("One."), Message.user("Two."), Message.assistant("Three."), Message.system("Four.")]
        text = dialect.render([*said, Message.user("Five.")]).text
        places = [text.index(word) for word in ("One.", "Two.", "Three.", "Four.", "Five.")]
        assert places == sorted(places), dialect.name
