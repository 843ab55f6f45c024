"""Chats with models of transformers: their templates, tools in their own form, objects, and words that are no marks."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax
from tests.own_engine import own_engine
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


class City(BaseModel):
    """A city."""

    name: str = Field(max_length=12)
    inhabitants: int = Field(ge=0, le=9_999_999)


def get_weather(city: str, days: int) -> str:
    """Tell how the weather will be."""
    return f"{city} {days}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qwen")
    save_model(folder, "qwen 3")
    return folder


@pytest.fixture
def llm(folder):
    with own_engine():
        yield ChatGemmaJax(model=f"torchax:{folder}", temperature=0, max_tokens=24)


def test_a_chat_streams_what_invoke_says(llm):
    whole = llm.invoke("How are you?")
    parts = [chunk.content for chunk in llm.stream("How are you?")]
    assert "".join(parts) == whole.content
    assert whole.usage_metadata["output_tokens"] > 0


def test_the_prompt_is_what_transformers_makes_of_the_template(llm, folder):
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    theirs.chat_template = (folder / "chat_template.jinja").read_text()
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello  there,\n\nwho are you?"}]
    want = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    from langchain_core.messages import HumanMessage, SystemMessage

    count = llm.get_num_tokens_from_messages([SystemMessage("Be short."), HumanMessage(chat[1]["content"])])
    assert count == len(want)


def test_a_tool_is_called_in_the_models_own_form(llm):
    asked = llm.bind_tools([get_weather], tool_choice="any", max_tokens=200, parallel_tool_calls=False)
    answer = asked.invoke("How is the weather in Oslo?")
    (call,) = answer.tool_calls
    assert call["name"] == "get_weather"
    assert set(call["args"]) == {"city", "days"}


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_objects_come_by_each_method(llm, method):
    found = llm.with_structured_output(City, method=method, max_tokens=200).invoke("Oslo?")
    assert isinstance(found, City)


def test_a_conversation_that_goes_on_reuses_what_was_read(llm):
    first = llm.invoke([("user", "One")])
    second = llm.invoke([("user", "One"), ("ai", first.content), ("user", "Two")])
    assert second.response_metadata  # it answered
    assert second.usage_metadata["input_token_details"]["cache_read"] > 8
