"""The configuration of a model, as a GGUF file's metadata have it."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.gguf.opening import open_gguf
from tests.models.gguf.make import file_of


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("block_count", None, "expected a value of gemma3.block_count"),
        ("block_count", 1 << 20, "at most 1000"),
        ("embedding_length", 0, "hidden_size"),
        ("attention.head_count", 0, "num_attention_heads"),
        ("attention.head_count_kv", 3, "a multiple of the key-value heads"),
        ("attention.value_length", 32, "64, as keys"),
        ("attention.sliding_window_pattern", [True] * 3, "a list of 2"),
        ("rope.scaling.type", "yarn", "found 'yarn'"),
        ("context_length", "many", "expected gemma3.context_length to be int, found 'many'"),
    ],
)
def test_metadata_that_cannot_be(tmp_path, name, value, says):
    def change(writer):
        writer.kv_data[0].pop(f"gemma3.{name}", None)
        add = {int: writer.add_uint32, str: writer.add_string, list: writer.add_array, type(None): lambda *_: None}
        add[type(value)](f"gemma3.{name}", value)

    with pytest.raises((ConfigError, UnsupportedModelError), match=says):
        open_gguf(file_of(tmp_path / "x.gguf", change=change))


def test_what_old_files_leave_out_is_what_llama_cpp_has_fixed(tmp_path):
    def change(writer):
        for name in [name for name in writer.kv_data[0] if "rope" in name or name.endswith("pattern")]:
            writer.kv_data[0].pop(name)

    def config(architecture):
        model = open_gguf(file_of(tmp_path / "x.gguf", architecture, architecture, change=change))
        model.checkpoint.tensors.close()
        return model.checkpoint.config

    found = config("gemma3").layers
    assert [one.window for one in found] == [8, 8]  # every sixth is global
    assert [one.rope.theta for one in found] == [1e4, 1e4]
    assert [one.window for one in config("gemma2").layers] == [8, None]
