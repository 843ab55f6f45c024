"""The readiness of a server to answer its first call fast: models in memory, with their programs made."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Sequence

from langchain_gemma_jax.errors import ClosedError, GemmaJaxError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad

_log = logging.getLogger(__name__)


class Readiness:
    """Loads models and makes their programs, one after the other, in a thread of its own."""

    def __init__(
        self,
        models: Sequence[str],
        *,
        warmup: bool = True,
        max_context: int | None = None,
        how: HowToLoad | None = None,
        on_failure: Callable[[GemmaJaxError], object] | None = None,
    ) -> None:
        """Say what is to be made ready.

        ``warmup``: make all programs, for conversations of up to ``max_context`` tokens; else only load weights.
        ``how``: how the models are loaded for callers who say nothing else.
        """
        self._how = how or HowToLoad()
        self._models, self._warmup, self._max_context = models, warmup, max_context
        self._on_failure = on_failure
        self._pending: dict[str, str] = dict.fromkeys(models, "weights")
        self._thread: threading.Thread | None = None

    @property
    def pending(self) -> dict[str, str]:
        """For each model that is not ready: "weights" or "programs", which it lacks, or the text of its error."""
        return dict(self._pending)

    def begin(self) -> None:
        """Begin in a thread, unless that was done already."""
        if self._thread is None:
            # A daemon: the process may end while programs are being made. The engine's own threads do that.
            self._thread = threading.Thread(target=self._make_ready, name="gemma-jax-readiness", daemon=True)
            self._thread.start()

    def make_ready(self) -> None:
        """Load the models and make their programs in this thread. ``begin`` does nothing afterwards.

        Raises:
            GemmaJaxError: a model cannot be loaded.
        """
        self._thread = threading.current_thread()
        for model in self._models:
            self._make_one_ready(model)

    def _make_ready(self) -> None:
        import langchain_gemma_jax.engine.api.process  # noqa: F401

        gc.freeze()  # else collections during answers go over hundreds of thousands of JAX's objects
        for model in self._models:
            try:
                self._make_one_ready(model)
            except ClosedError:
                return  # the server ended first
            except GemmaJaxError as error:
                self._pending[model] = str(error)
                if self._on_failure is not None:
                    self._on_failure(error)  # it reports the error
                else:
                    _log.warning("%s is not ready: %s", model, error)

    def _make_one_ready(self, model: str) -> None:
        from langchain_gemma_jax.engine.api.process import engine

        served = engine().load(model, timeout=None, **self._how.arguments())
        if self._warmup:
            self._pending[model] = "programs"
            engine().warmup(served, max_context=self._max_context, progress=False)
        self._pending.pop(model)
