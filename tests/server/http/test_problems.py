"""Every kind of error has a status, and a failure that nobody foresaw is told and not shown."""

from __future__ import annotations

import json

from langchain_gemma_jax import errors
from langchain_gemma_jax.server.http.problems import problem_of
from tests.serving import PUBLIC, asked


def test_a_failure_that_nobody_foresaw_is_told_and_not_shown(at, says, caplog):
    def fail() -> None:
        raise KeyError("a secret of another tenant")

    says("Hello<turn|>").before = fail
    for path, body in PUBLIC.items():
        status, found, _ = asked(at, path, body)
        assert (status, "secret" in json.dumps(found)) == (500, False)
    assert "KeyError in test_problems.py" in caplog.text
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text
    assert not any(record.exc_info for record in caplog.records)


def test_every_kind_of_error_has_a_status():
    for name in dir(errors):
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, errors.GemmaJaxError):
            error = kind.__new__(kind)
            assert 400 <= problem_of(error).status < 600
