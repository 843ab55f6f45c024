"""Servers and processes: web clients that leave, processes that are spawned and forked, test runners on all cores."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from textwrap import dedent

import pytest

from tests.waiting import until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

APP = """
    from fastapi import FastAPI
    from langchain_gemma_jax import ChatGemmaJax

    app = FastAPI()
    model = ChatGemmaJax(model="sprout-s", max_tokens=8, temperature=0)

    @app.get("/say")
    async def say() -> dict:
        return {"said": (await model.ainvoke("Hello!")).text}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Share compiled programs between the processes: the test is that they start, and not how fast."""
    place = str(tmp_path_factory.mktemp("programs") / "programs")
    return {"GEMMA_JAX_COMPILE_CACHE": place, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


@pytest.fixture
def place(tmp_path, compiled):
    """A folder with the app, and the environment of a server."""
    (tmp_path / "app.py").write_text(dedent(APP))
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "JAX_PLATFORMS", "LANG"}}
    return tmp_path, kept | compiled | {"PYTHONPATH": f"{ROOT}:{tmp_path}", "HOME": str(tmp_path)}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def said(port: int, server: subprocess.Popen) -> str:
    while True:
        assert server.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/say") as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(0.5)


@pytest.mark.parametrize("kind", ["uvicorn", "gunicorn"])
def test_servers_with_several_processes(kind, place):
    pytest.importorskip("fastapi")
    pytest.importorskip(kind)
    folder, env = place
    port = free_port()
    bound = ["--host", "127.0.0.1", "--port", str(port), "--workers", "2"]
    if kind == "gunicorn":
        bound = ["-b", f"127.0.0.1:{port}", "-w", "2", "-k", "uvicorn.workers.UvicornWorker", "--preload", "-t", "300"]
    with subprocess.Popen(
        [sys.executable, "-m", kind, *bound, "app:app"],
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as server:
        try:
            found = {said(port, server) for _ in range(6)}
            assert len(found) == 1
            assert "said" in found.pop()
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.communicate()


def test_a_web_client_that_leaves_stops_the_work(chat_of, running):
    fastapi = pytest.importorskip("fastapi")
    uvicorn = pytest.importorskip("uvicorn")
    from fastapi.responses import StreamingResponse

    app, model = fastapi.FastAPI(), chat_of(max_tokens=1500, temperature=1.0, seed=3)
    left = threading.Event()

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def pieces():
            try:
                async for chunk in model.astream("HELLO", logit_bias=dict.fromkeys(range(3), -100)):
                    yield chunk.text or " "
            finally:
                left.set()

        return StreamingResponse(pieces())

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        before = running.report()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stream") as answer:
            assert answer.read(1)
        assert left.wait()
        until(lambda: not running.report().running)
        after = running.report()
        assert after.generated_tokens - before.generated_tokens < 1500
    finally:
        server.should_exit = True
        thread.join()


SPAWNED = """
    import multiprocessing, sys
    from langchain_gemma_jax import ChatGemmaJax

    def say(pipe):
        try:
            pipe.send(ChatGemmaJax(model="sprout-s", max_tokens=4, temperature=0).invoke("Hello!").text)
        except Exception as error:
            pipe.send(type(error).__name__)

    if __name__ == "__main__":
        way, used = sys.argv[1:]
        if used == "after":
            ChatGemmaJax(model="sprout-s", max_tokens=4).invoke("Hello!")
        context = multiprocessing.get_context(way)
        here, there = context.Pipe()
        child = context.Process(target=say, args=(there,))
        child.start()
        print(here.recv() if here.poll(200) else "nothing", end="")
        child.join(60)
"""


@pytest.mark.parametrize(
    ("way", "used", "refused"), [("spawn", "after", False), ("fork", "before", False), ("fork", "after", True)]
)
def test_processes_of_their_own(way, used, refused, place):
    folder, env = place
    (folder / "main.py").write_text(dedent(SPAWNED))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "main.py", way, used],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout == "ForkedError") == refused, done.stderr
    assert done.stdout not in {"", "nothing"}


def test_test_runners_on_all_cores(place):
    folder, env = place
    test = """
        import pytest
        from langchain_gemma_jax import ChatGemmaJax

        @pytest.mark.parametrize("number", range(4))
        def test_it(number):
            assert ChatGemmaJax(model="sprout-s", max_tokens=4, temperature=0).invoke("Hello!").text
    """
    (folder / "test_it.py").write_text(dedent(test))
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout


async def test_many_event_loops(chat_of):
    model = chat_of()
    alone = (await model.ainvoke("HELLO")).text

    def one() -> str:
        return asyncio.run(model.ainvoke("HELLO")).text

    assert await asyncio.gather(*(asyncio.to_thread(one) for _ in range(4))) == [alone] * 4
