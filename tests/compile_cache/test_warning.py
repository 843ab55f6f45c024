"""The warning is given once a process, and never raises."""

from __future__ import annotations

import logging
import sys
import threading
import warnings

import pytest

from langchain_gemma_jax.compile_cache import warning
from langchain_gemma_jax.compile_cache.warning import CompileCacheWarning, warn_once


@pytest.fixture(autouse=True)
def _real_warnings(said, monkeypatch):
    monkeypatch.setattr(warning, "warnings", warnings)


def test_it_is_given_once(caplog):
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True, action="always") as caught:
        for message in ["first", "second", "third"]:
            warn_once(message)
    assert [(one.category, str(one.message)) for one in caught] == [(CompileCacheWarning, "first")]
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "second"),
        ("DEBUG", "third"),
    ]


def test_where_warnings_are_errors_it_goes_to_the_log(caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_once("first")
        warn_once("second")
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", "first")]


def test_of_many_threads_one_warns(monkeypatch):
    given = []
    monkeypatch.setattr(warnings, "warn", lambda message, *_args, **_options: given.append(message))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        ready = threading.Barrier(16)
        threads = [threading.Thread(target=lambda: (ready.wait(), warn_once("x"))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert given == ["x"]
