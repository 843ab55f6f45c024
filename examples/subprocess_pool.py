"""Workers, each a process of its own, and one engine for all of them.

    python examples/subprocess_pool.py

A worker imports no JAX and loads no weights: it asks the server through a Unix socket, and is done in about the time
that importing LangChain takes. Agents that start a process for each request, test runners and web workers are like
this. Workers that are forked from a process that has imported LangChain do not wait for that either. Instead of
starting a server here, run one for all your programs: ``gemma-jax serve``, and ``ChatGemmaJax(server="auto")`` wherever
you need it.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from langchain_gemma_jax import ChatGemmaJax, ServerUnreachableError

WORKER = """
import sys, time
began = time.perf_counter()
from langchain_gemma_jax import ChatGemmaJax

model = ChatGemmaJax(server=sys.argv[1], max_tokens=24, temperature=0)
stream = model.stream(sys.argv[2])
first = next(stream).text
took = time.perf_counter() - began
answer = first + "".join(chunk.text for chunk in stream)
print(f"{sys.argv[2]} -> {answer}  (first token after {took:.2f} s, jax: {'jax' in sys.modules})")
"""
QUESTIONS = ("Hello!", "Thank you!", "Who are you?")


def main() -> None:
    """Start a server and the workers, and end the server."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        place = f"{folder}/pool.sock"
        command = [
            sys.executable,
            "-m",
            "langchain_gemma_jax.cli",
            "serve",
            "sprout-s",
            "--no-warmup",
            "--socket",
            place,
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                wait_for(f"unix:{place}", server)
                workers = [
                    subprocess.Popen([sys.executable, "-c", WORKER, f"unix:{place}", each]) for each in QUESTIONS
                ]
                for worker in workers:
                    worker.wait()
                fork_workers(f"unix:{place}")
            finally:
                server.terminate()
        print(f"The server ended with status {server.returncode}.")


def fork_workers(address: str) -> None:
    """Have workers start from a process that has imported what they need, and nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["langchain_gemma_jax.chat_model", "langchain_gemma_jax.client.remote_model"])
    for question in QUESTIONS:  # the first one waits for the imports
        worker = context.Process(target=answer, args=(address, question, time.perf_counter()))
        worker.start()
        worker.join()


def answer(address: str, question: str, began: float) -> None:
    """Answer one question, in a process that was started for it."""
    stream = ChatGemmaJax(server=address, max_tokens=24, temperature=0).stream(question)
    first = next(stream).text
    took = time.perf_counter() - began
    print(f"{question} -> {first}{''.join(chunk.text for chunk in stream)}  (forked; first token after {took:.2f} s)")


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers, and so has its model in memory."""
    model = ChatGemmaJax(server=address, max_tokens=1)
    while server.poll() is None:
        try:
            model.invoke("Hello!")
            return
        except ServerUnreachableError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
