from __future__ import annotations

import re
from pathlib import Path

import pytest

from langchain_gemma_jax import InputError, config
from langchain_gemma_jax.config import cache_dir, compile_cache_root, jax_cache_is_set, native_log_level


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    for name in ("GEMMA_JAX_CACHE_DIR", "GEMMA_JAX_COMPILE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


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


@pytest.mark.parametrize("value", [None, "", "on", "ON", "1"])
def test_compiled_programs_are_kept_beside_the_rest(monkeypatch, tmp_path, value):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    if value is not None:
        monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", value)
    assert compile_cache_root() == tmp_path / "xla"


@pytest.mark.parametrize("value", ["off", "Off", "0"])
def test_compiled_programs_are_not_kept(monkeypatch, value):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", value)
    assert compile_cache_root() is None


def test_compiled_programs_are_kept_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(tmp_path))
    assert compile_cache_root() == tmp_path
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", "~/programs")
    assert compile_cache_root() == Path.home() / "programs"


@pytest.mark.parametrize("value", ["no", "relative/folder", "2"])
def test_a_folder_for_programs_that_cannot_be_meant_is_refused(monkeypatch, value):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", value)
    with pytest.raises(InputError, match=f'GEMMA_JAX_COMPILE_CACHE: expected "on", "off" or .* found {value!r}'):
        compile_cache_root()


@pytest.mark.parametrize(("value", "expected"), [(None, False), ("", True), ("/theirs", True)])
def test_whether_jax_has_a_cache_of_the_users_own(monkeypatch, value, expected):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    if value is not None:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", value)
    assert jax_cache_is_set() is expected


@pytest.mark.parametrize(("value", "expected"), [(None, 1), ("", 1), ("0", 0), ("3", 3), ("nothing", 1), ("-1", 1)])
def test_the_level_of_messages_from_the_compiled_half(monkeypatch, value, expected):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    if value is not None:
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", value)
    assert native_log_level() == expected


def test_the_wait_for_the_compiler(monkeypatch):
    for value, expected in {"": 1.0, "0": 0.0, "2.5": 2.5, "3600": 3600.0}.items():
        monkeypatch.setenv("GEMMA_JAX_COMPILE_WAIT", value)
        assert config.compile_wait() == expected
    for value in ("-1", "nan", "inf", "a minute", "1e99"):
        monkeypatch.setenv("GEMMA_JAX_COMPILE_WAIT", value)
        with pytest.raises(InputError, match=r"^GEMMA_JAX_COMPILE_WAIT: expected seconds .*found"):
            config.compile_wait()


def test_every_variable_is_explained_where_it_is_read_and_in_the_documentation():
    source = Path(config.__file__).read_text()
    page = Path(config.__file__).parents[1].joinpath("docs", "install.md").read_text()
    read = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', source))
    assert "GEMMA_JAX_CACHE_DIR" in read
    for variable in read:
        assert variable in str(config.__doc__), variable
        assert variable in page, variable
