"""An engine of a test's own, where others of the same process may have left theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from langchain_gemma_jax.engine.api import process


@contextmanager
def own_engine() -> Iterator[None]:
    """Begin without an engine, and close the one that was started meanwhile: that of other tests goes on as it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_engine", None)
        yield
        assert process._engine is None or process._engine.close(30)
