from __future__ import annotations

import re
from pathlib import Path

import pytest

from langchain_gemma_jax import InputError, config
from langchain_gemma_jax.config import cache_dir


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    monkeypatch.delenv("GEMMA_JAX_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_the_cache_is_in_the_home_folder():
    assert cache_dir() == Path.home() / ".cache" / "langchain-gemma-jax"


def test_the_cache_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "langchain-gemma-jax"


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_an_xdg_folder_that_is_not_absolute_does_not_count(monkeypatch, value):
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_dir() == Path.home() / ".cache" / "langchain-gemma-jax"


def test_our_own_variable_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", "~/models")
    assert cache_dir() == Path.home() / "models"


def test_a_relative_folder_is_refused(monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", "cache")
    with pytest.raises(InputError, match=r"GEMMA_JAX_CACHE_DIR: expected an absolute folder .* found 'cache'"):
        cache_dir()


def test_asking_makes_nothing():
    assert not cache_dir().exists()


def test_every_variable_is_explained_where_it_is_read_and_in_the_documentation():
    source = Path(config.__file__).read_text()
    page = Path(config.__file__).parents[1].joinpath("docs", "install.md").read_text()
    read = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', source))
    assert "GEMMA_JAX_CACHE_DIR" in read
    for variable in read:
        assert variable in str(config.__doc__), variable
        assert variable in page, variable
