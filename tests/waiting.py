"""How tests wait: for what is to happen, however long that takes. pytest's own limit ends a test that waits in vain."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG = 300.0  # seconds: as long as pytest lets a test run, for what has to be given a limit


def until(condition: Callable[[], object]) -> None:
    """Look until it is true."""
    while not condition():
        time.sleep(0.002)
