"""``gemma-jax serve`` as a process, whose engine has no model: it says a word every now and then, for a long time.

    python slow_server.py PATH WORDS PAUSE DRAIN

Starting JAX and loading a model is what takes a server's time; none of it is what these tests are about.
"""

from __future__ import annotations

import sys
import threading
import time

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.server import readiness
from tests.chat.scripted import ScriptedEngine


class SlowEngine(ScriptedEngine):
    """Says its answer in a thread, with pauses. ``close`` is the real engine's."""

    pause = 0.0

    def _say(self, request: Request, answer: str) -> None:
        threading.Thread(target=self._say_slowly, args=(request, answer), daemon=True).start()

    def _say_slowly(self, request: Request, answer: str) -> None:
        from langchain_gemma_jax.engine.requests.request import FinishReason
        from langchain_gemma_jax.engine.steps.postprocess import accept
        from tests.dialects.vocabulary import tokenizer

        for token in tokenizer().encode_scaffold(answer):
            if request.cancelled.is_set():
                return
            time.sleep(self.pause)
            accept(request, [token], ())
        request.mailbox.put(request.completion(FinishReason.STOP, None, time.monotonic()), last=True)

    def close(self, timeout: float | None = None) -> bool:
        return True


if __name__ == "__main__":
    place, words, pause, drain = sys.argv[1:]
    engine = SlowEngine(["x" * int(words)] * 1000)
    engine.pause = float(pause)
    process.engine = lambda: engine
    readiness.Readiness.begin = lambda self: self._pending.clear()
    sys.exit(main(["serve", "sprout-s", "--socket", place, "--drain", drain]))
