from __future__ import annotations

import io
import sys

import pytest

from langchain_gemma_jax.models.hub.progress import is_wanted, loading_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stderr", [None, io.StringIO(), Terminal()])
@pytest.mark.parametrize("said", [True, False, None])
def test_what_the_caller_said_counts_and_otherwise_whether_somebody_looks(stderr, said, monkeypatch):
    """``sys.stderr`` is None in a program without a console."""
    monkeypatch.setattr(sys, "stderr", stderr)
    assert is_wanted(progress=said) is (isinstance(stderr, Terminal) if said is None else said)


def test_the_bar_counts_bytes(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with loading_bar("mine", 4_000_000, progress=None) as advance:
        advance(3_000_000)
        advance(1_000_000)
    assert "Loading mine: 100%" in sys.stderr.getvalue()
    assert "4.00M/4.00M" in sys.stderr.getvalue()


def test_no_bar_is_nothing_to_call():
    with loading_bar("mine", 1, progress=False) as advance:
        assert advance is None
