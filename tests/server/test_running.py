"""A server as a process: it is killed, it is told to end, it restarts. Clients learn of it at once, in our words."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

import langchain_gemma_jax.engine.api.process
from langchain_gemma_jax import ChatGemmaJax, DeadlineError, ServerUnreachableError
from langchain_gemma_jax.server.running import RunningServer
from tests.serving import asked

ROOT = Path(__file__).parents[2]


@contextmanager
def started(place: Path, *, words: int, pause: float, drain: float = 5) -> Iterator[subprocess.Popen[str]]:
    script = [sys.executable, "-m", "tests.server.slow_server", str(place), str(words), str(pause), str(drain)]
    with subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == f"Serving sprout-s at unix:{place}\n", process.communicate()
            yield process
        finally:
            process.kill()
            process.communicate()


class Streaming(threading.Thread):
    """Reads a stream to its end; notes how it ended."""

    def __init__(self, model: ChatGemmaJax) -> None:
        super().__init__(daemon=True)
        self.model, self.begun, self.text = model, threading.Event(), ""
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            for chunk in self.model.stream("Hi"):
                self.text += chunk.text
                self.begun.set()
        except Exception as error:  # noqa: BLE001
            self.error = error
        self.begun.set()


@pytest.mark.long
def test_a_server_that_is_killed_and_one_that_is_told_to_end(tmp_path):
    place = tmp_path / "engine.sock"
    model = ChatGemmaJax(server=f"unix:{place}")
    with started(place, words=2000, pause=0.02) as process:
        streams = [Streaming(model) for _ in range(4)]
        assert all(each.begun.wait() for each in streams)
        process.kill()
        for each in streams:
            each.join()
            assert type(each.error) is ServerUnreachableError
            assert each.error.is_retryable
            assert len(each.text) < 2000, "and not when the answer would have ended"
        process.wait()
        with pytest.raises(ServerUnreachableError, match=f"Start one: gemma-jax serve --socket {place}"):
            model.invoke("Hi")
    # The dead one's socket is replaced. Answers of this one take a second, and some have no more time than that.
    with started(place, words=40, pause=0.02, drain=8) as process:
        assert model.invoke("Hi").text == "x" * 40
        assert asked(f"unix:{place}", "/ready")[0] == 200
        streams = [Streaming(model) for _ in range(32)]
        assert all(each.begun.wait() for each in streams)
        process.send_signal(signal.SIGTERM)
        for each in streams:
            each.join()
            assert (each.error, each.text) == (None, "x" * 40)
        assert process.wait() == 0
        assert process.stderr.read() == ""
        assert list(tmp_path.iterdir()) == []
    with started(place, words=2000, pause=0.02, drain=0.3) as process:
        stream = Streaming(model)
        assert stream.begun.wait()
        process.send_signal(signal.SIGTERM)
        stream.join()
        assert type(stream.error) is DeadlineError
        assert "server is ending" in str(stream.error)
        assert process.wait() == 0


def test_a_server_in_a_thread_ends_with_its_block(tmp_path, monkeypatch):
    from tests.serving import serving

    monkeypatch.setattr(langchain_gemma_jax.engine.api.process, "engine", lambda: None)
    with serving(tmp_path) as server:
        assert isinstance(server, RunningServer)
        assert asked(server.listening.shown, "/health")[0] == 200
    assert list(tmp_path.iterdir()) == []


def test_a_server_leaves_the_log_handlers_of_its_process_alone(tmp_path):
    from tests.serving import serving

    closed = []
    kept = logging.Handler()  # as absl's, which closes the stream that it was made with
    kept.close = lambda: closed.append(kept)
    with serving(tmp_path):
        pass
    assert closed == []
    assert not logging.getLogger("uvicorn").handlers
