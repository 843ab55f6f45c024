"""Something is done as soon as a module is imported, once, and whoever else looks for it changes nothing."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from langchain_gemma_jax.when_imported import WhenImported, when_imported

NAME = "module_that_a_test_made"


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield
    sys.modules.pop(NAME, None)


def waiting():
    return [finder for finder in sys.meta_path if isinstance(finder, WhenImported) and finder.name == NAME]


def test_it_is_done_once_right_after_the_import_and_leaves_nothing():
    done = []
    when_imported(NAME, lambda: done.append(sys.modules[NAME].value))
    when_imported(NAME, lambda: done.append("the second"))
    assert (len(waiting()), done) == (1, [])
    importlib.import_module(NAME)
    assert (waiting(), done) == ([], [1])
    sys.modules.pop(NAME)
    importlib.import_module(NAME)
    assert done == [1]


def test_it_is_done_at_once_where_the_module_is_there():
    importlib.import_module(NAME)
    done = []
    when_imported(NAME, lambda: done.append(1))
    assert (waiting(), done) == ([], [1])


def test_who_only_looks_for_the_module_does_nothing():
    done = []
    when_imported(NAME, lambda: done.append(1))
    assert importlib.util.find_spec(NAME).name == NAME
    assert done == []
    assert importlib.util.find_spec("another_module_that_is_not_there") is None
    importlib.import_module(NAME)
    assert done == [1]
