"""The meanings of a name, before anything is fetched."""

from __future__ import annotations

import subprocess
import sys

import pytest

from langchain_gemma_jax.errors import UnknownModelError
from langchain_gemma_jax.models.loading.model_names import check_name, means_model

LIGHT = """
import sys
from langchain_gemma_jax.models.loading.model_names import check_name
check_name("sprout-s")
print(sorted({"jax", "numpy", "langchain_core", "huggingface_hub"} & set(sys.modules)))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, file in (("notes", "a.txt"), ("weights", "x.gguf"), ("folder", "config.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    return tmp_path


def test_a_word_that_could_be_something_else_is_a_model_where_it_can_hardly_be_anything_else(here):
    models = ["sprout-s", "ollama:x", "torchax:a/b", "folder", "./folder", "weights", "weights/x.gguf",
              "google/gemma-3-1b-it", "unsloth/gemma-3-1b-it-GGUF:Q8_0"]  # fmt: skip
    others = ["", "notes", "notes/a.txt", "TCP/IP", "gemma", "Hello", "what is gemma/x?", "a/b", "./gone.gguf"]
    assert [word for word in models + others if means_model(word)] == models


def test_what_means_nothing_is_said_in_the_words_of_what_it_looks_like(here):
    for name in ("sprout-s", "folder", "notes", "a/b", "a/b:Q8_0", "ollama:x", "torchax:a/b", "torchax:folder"):
        check_name(name)
    for name in ("./gone", "torchax:./gone"):
        with pytest.raises(
            UnknownModelError, match=f"^'./gone' is not here: there is no file or folder at {here}/gone"
        ):
            check_name(name)
    with pytest.raises(UnknownModelError, match=r"^'sprout' is neither a folder nor a file .*Did you mean 'sprout-s'"):
        check_name("sprout")


def test_it_takes_no_large_library():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
