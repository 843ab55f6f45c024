"""Closes the lines that a test made."""

from __future__ import annotations

import pytest

from tests.scale.hosts.made_lines import made_ends


@pytest.fixture(autouse=True)
def _closed():
    yield
    while made_ends:
        made_ends.pop().close()
