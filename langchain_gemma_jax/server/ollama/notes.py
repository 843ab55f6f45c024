"""Notes to the caller of Ollama's API: options without an effect, and what the engine warns of."""

from __future__ import annotations

from collections import deque
from typing import Any

from langchain_gemma_jax.engine.host.warning_sink import warning_sink


class Notes:
    """The warnings of one call's answer, for its field ``warnings``."""

    def __init__(self) -> None:
        self._heard: deque[str] = deque()
        self.listen()

    def listen(self) -> None:
        """Take the engine's warnings from now on, in this thread or task."""
        warning_sink.set(self._warned)

    def add(self, note: str) -> None:
        """Add a note."""
        self._heard.append(note)

    @property
    def field(self) -> dict[str, Any]:
        """The field of an answer; nothing where there is no note."""
        return {"warnings": list(dict.fromkeys(self._heard))} if self._heard else {}

    def _warned(self, warning: Warning) -> None:
        self._heard.append(str(warning))
