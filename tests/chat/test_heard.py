"""A sound in a conversation, from the bytes of its file to the answer, against transformers: ``make_heard_talk.py``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from langchain_core.messages import HumanMessage
from safetensors.numpy import save_file

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.media.samples import base64_of, wav
from tests.parity.heard_talk import (
    ASKED,
    ENDED,
    NAMES,
    NEW_TOKENS,
    NO_THOUGHT,
    VOCABULARY,
    config_of,
    grown,
    id_of,
    played,
    vocabulary,
    weight,
)
from tests.parity.media_models import MODELS
from tests.seeing_folder import golden


@pytest.fixture
def hearing(tmp_path):
    """Write the folder of a model that hears."""

    def hearing(name):
        (tmp_path / "config.json").write_text(json.dumps(config_of(name)))
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(MODELS[name].processor))
        (tmp_path / "tokenizer.json").write_text(json.dumps(vocabulary()))
        ends = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(ends))
        (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
        shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(name)["tensors"])).items()}
        tensors = {key: weight(key, shape, name) for key, shape in grown(shapes).items()}
        assert any(VOCABULARY in value.shape for value in tensors.values())
        save_file(tensors, tmp_path / "model.safetensors")
        return tmp_path

    return hearing


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_sound_is_heard_once_and_answered_as_transformers_answers(name, hearing, running):
    folder, found = hearing(name), golden("heard_talk")
    prompt, said = found[f"prompt_{name}"], found[f"answer_{name}"]
    assert found[f"margin_{name}"] > 1e-3, "no near ties"
    soft = int((prompt == id_of("<|audio|>")).sum())
    model = ChatGemmaJax(model=str(folder), dtype="float32", max_tokens=NEW_TOKENS, temperature=0)
    assert model.profile["audio_inputs"] is True
    data = base64_of(wav(played(name) / 32768))
    sound = {"type": "audio", "base64": data, "mime_type": "audio/wav"}
    messages = [HumanMessage([ASKED, sound, {"type": "text", "text": ENDED}])]

    before = running.report().media_encoded
    answer = model.invoke(messages)
    assert running.report().media_encoded == before + 1
    assert answer.text == load_tokenizer(folder).decode(said.tolist())
    assert answer.usage_metadata["input_tokens"] == len(prompt) == model.get_num_tokens_from_messages(messages)
    assert answer.usage_metadata["input_token_details"]["audio"] == soft

    messages += [answer, HumanMessage("And then?")]
    again = model.invoke(messages)
    assert running.report().media_encoded == before + 1, "it is heard once"
    details = again.usage_metadata["input_token_details"]
    assert details["audio"] == soft
    left_out = len(load_tokenizer(folder).encode_scaffold(NO_THOUGHT.get(name, "")))
    assert details["cache_read"] >= len(prompt) - left_out
    assert again.usage_metadata["input_tokens"] == model.get_num_tokens_from_messages(messages)

    other = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    same = model.invoke([HumanMessage([ASKED, other, {"type": "text", "text": ENDED}])])
    assert (same.text, running.report().media_encoded) == (answer.text, before + 1)
    quieter = {**sound, "base64": base64_of(wav(np.float32(0.5) * played(name) / 32768))}
    model.invoke([HumanMessage([ASKED, quieter, {"type": "text", "text": ENDED}])])
    assert running.report().media_encoded == before + 2, "another sound of the same length shares nothing"
