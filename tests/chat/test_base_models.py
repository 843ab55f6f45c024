"""A file that says nothing of conversations is a base model's; one with a template, its own or Ollama's, is not."""

from __future__ import annotations

from contextvars import copy_context
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.chat.calling import base_models
from langchain_gemma_jax.chat.calling.base_models import BaseModels, BaseModelWarning, is_base_model
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.engine.host.warning_sink import warning_sink
from langchain_gemma_jax.models.loading.load import load
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write


class Served(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.mark.long
@pytest.mark.parametrize(
    ("said", "is_base"),
    [
        ({}, True),
        ({"add_chat_template": "{{ boom }}"}, False),
        ({"add_eot_token_id": 5}, False),  # it was taught how a turn ends
        ({"add_eot_token_id": 1}, True),
    ],
)
def test_a_gguf_file_of_a_base_model_says_so_once(tmp_path, recwarn, said, is_base):
    path = tmp_path / "x.gguf"

    def more(writer):
        for name, value in said.items():
            getattr(writer, name)(value)

    write(path, CONFIGS["gemma"], of_one_kind("Q8_0"), tokenizer=small_tokenizer(), more=more)
    with load(path, dtype="float32", progress=False) as model:
        served, seen = Served(model=model, name="x"), BaseModels()
        for _ in range(2):
            seen.warn(served, GemmaDialect())
    found = [each for each in recwarn if each.category is BaseModelWarning]
    assert len(found) == is_base
    heard: list[Warning] = []
    context = copy_context()
    context.run(warning_sink.set, heard.append)
    for _ in range(2):  # whoever asks from elsewhere has not heard what was said here
        context.run(seen.warn, served, GemmaDialect())
    assert [type(each) for each in heard] == [BaseModelWarning] * (2 * is_base)
    assert all("no chat template in its files" in str(each.message) for each in found)


def test_a_signal_handler_may_check_a_model_while_it_is_checked(tmp_path, recwarn, monkeypatch):
    path = tmp_path / "x.gguf"
    write(path, CONFIGS["gemma"], of_one_kind("Q8_0"), tokenizer=small_tokenizer(), more=lambda _: None)
    with load(path, dtype="float32", progress=False) as model:
        served, seen, calls = Served(model=model, name="x"), BaseModels(), []

        def interrupted(*args):
            calls.append(args)
            if len(calls) == 1:
                seen.warn(served, GemmaDialect())
            return is_base_model(*args)

        monkeypatch.setattr(base_models, "is_base_model", interrupted)
        seen.warn(served, GemmaDialect())
        seen.warn(served, GemmaDialect())
    assert len(calls) == 2
    assert len([each for each in recwarn if each.category is BaseModelWarning]) == 1
