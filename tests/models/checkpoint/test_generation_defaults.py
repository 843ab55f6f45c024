"""The sampling settings in a folder."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError, UnsafeCheckpointError
from langchain_gemma_jax.models.checkpoint.generation_defaults import generation_defaults_in


def test_they_are_what_the_file_says_and_none_where_there_is_no_file(tmp_path):
    assert generation_defaults_in(tmp_path) == {}
    (tmp_path / "generation_config.json").write_text('{"top_k": 64}')
    assert generation_defaults_in(tmp_path) == {"top_k": 64}


def test_they_are_malformed(tmp_path):
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(CorruptCheckpointError, match="generation_config"):
        generation_defaults_in(tmp_path)


def test_a_link_leads_out_of_the_folder(tmp_path):
    (tmp_path / "defaults.json").write_text("{}")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "generation_config.json").symlink_to("../defaults.json")
    with pytest.raises(UnsafeCheckpointError):
        generation_defaults_in(tmp_path / "model")
