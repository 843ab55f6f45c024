"""A chat template is read from wherever a folder has it."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError
from langchain_gemma_jax.models.checkpoint.read_template import images_apart_in, read_template


def write(folder, **config):
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def test_where_it_is(tmp_path):
    assert read_template(tmp_path) is None
    write(tmp_path, bos_token={"content": "<s>"}, eos_token="</s>", pad_token=None, add_bos_token=True)
    assert read_template(tmp_path) is None
    write(tmp_path, bos_token={"content": "<s>"}, eos_token="</s>", chat_template="{{ bos_token }}")
    found = read_template(tmp_path)
    assert (found.source, found.with_tools, dict(found.names)) == (
        "{{ bos_token }}", None, {"bos_token": "<s>", "eos_token": "</s>"},
    )  # fmt: skip
    write(tmp_path, chat_template=[{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}])
    assert (read_template(tmp_path).source, read_template(tmp_path).with_tools) == ("a", "b")
    (tmp_path / "chat_template.jinja").write_text("the file's", "utf-8")
    assert read_template(tmp_path).source == "the file's"


def test_what_is_none(tmp_path):
    write(tmp_path, chat_template=7)
    with pytest.raises(CorruptCheckpointError, match="chat_template"):
        read_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(CorruptCheckpointError, match="UTF-8"):
        read_template(tmp_path)


def test_images_apart_are_seen_in_a_template_that_can_be_read(tmp_path):
    assert not images_apart_in(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(r"{{- '\n\n<|image|>\n\n' -}}")
    assert images_apart_in(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")  # whoever asks for the template itself is told
    assert not images_apart_in(tmp_path)
