"""Our server and llama-cpp-python's, on one file and under one load: OpenAI's API, many clients at once.

Both are processes of their own with as many threads as there are cores. Half of the requests are streamed, which is
how the first token is timed. A third begins with a system prompt that is the same each time, a sixth asks for an object
of a schema. Answers are greedy and have a length at most. What is compared is by the clock, in turns.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.contenders import ENVIRONMENTS, ROOT

RIVAL = ENVIRONMENTS / "llama" / "bin" / "python"
ANSWER, CONTEXT = 24, 2048  # tokens
WARM = 32  # requests before the clock runs: programs are compiled
WORDS = ("The weather is", "A list of rivers:", "Once upon a time", "In 1848", "The recipe needs", "Dear reader,")
SYSTEM = "You are a careful clerk of a large library. " + " ".join(
    f"Rule {number}: books of shelf {number} are lent for {number % 9 + 1} weeks." for number in range(24)
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@dataclass
class Load:
    """The waits that many clients saw at once, and their throughput."""

    seconds: float = 0.0
    first: list[float] = field(default_factory=list)  # until the first token, of what was streamed
    whole: list[float] = field(default_factory=list)
    tokens: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The figures in a line."""
        first, whole = (quantiles(each, n=20)[18] for each in (self.first, self.whole))
        return (
            f"{self.tokens / self.seconds:.1f} tokens and {len(self.whole) / self.seconds:.2f} answers a second; first "
            f"token p50 {median(self.first):.2f} s, p95 {first:.2f} s; answer p95 {whole:.2f} s; lost {len(self.lost)}"
        )


@contextmanager
def listening(command: list[str], port: int) -> Iterator[int]:
    """Give the port of a server that answers."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 120
            while True:
                with suppress(OSError):
                    if asked(port, "GET", "/v1/models")[0] == 200:
                        break
                if server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"No server came of {' '.join(command)}. By hand it says why.")
                time.sleep(0.2)
            yield port
        finally:
            server.terminate()


def ours(file: Path, port: int) -> list[str]:
    """The command of our server."""
    at = ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "langchain_gemma_jax.cli", "serve", str(file), "--no-warmup", *at,
            "--max-context", str(CONTEXT)]  # fmt: skip


def rivals(file: Path, port: int) -> list[str]:
    """The command of llama-cpp-python's server. A new request would break off one that is streamed, by default."""
    at = ["--host", "127.0.0.1", "--port", str(port)]
    return [str(RIVAL), "-m", "llama_cpp.server", "--model", str(file), "--chat_format", "gemma", *at,
            "--n_ctx", str(CONTEXT), "--n_threads", str(os.cpu_count()), "--interrupt_requests", "False",
            "--verbose", "False"]  # fmt: skip


def asked(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """The status and the body of a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def body_of(number: int, model: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a number, of one of five kinds."""
    said = [{"role": "user", "content": f"{WORDS[number % len(WORDS)]} ({number})"}]
    if number % 3 == 0:
        said.insert(0, {"role": "system", "content": SYSTEM})
    found: dict[str, Any] = {"model": model, "messages": said, "max_tokens": ANSWER, "temperature": 0}
    if number % 6 == 1:
        found["response_format"] = form
    return found | {"stream": number % 2 == 0}


def ask(port: int, body: Mapping[str, Any], seen: Load) -> None:
    """Ask one, and note what is seen."""
    connection, began = http.client.HTTPConnection("127.0.0.1", port, timeout=600), time.perf_counter()
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        first, tokens = read(connection.getresponse(), streamed=body["stream"])
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        seen.lost.append(repr(error))
        return
    finally:
        connection.close()
    seen.whole.append(time.perf_counter() - began)
    seen.tokens += tokens
    if first is not None:
        seen.first.append(first - began)


def read(response: http.client.HTTPResponse, *, streamed: bool) -> tuple[float | None, int]:
    """Read an answer; return when its first token came, if it is streamed, and how many there were.

    Raises:
        OSError: it is an error, or broke off.
    """
    if response.status != 200:
        raise OSError(f"{response.status}: {response.read()[:200]!r}")
    if not streamed:
        return None, json.loads(response.read())["usage"]["completion_tokens"]
    first, tokens, last = None, 0, b""
    for line in response:
        last = line.strip() or last
        told = json.loads(line[6:]) if line.startswith(b"data: {") else {"choices": ()}
        if any(each["delta"].get("content") for each in told["choices"]):
            first = first or time.perf_counter()
            tokens += 1
    if last != b"data: [DONE]":
        raise OSError(f"the stream ended with {last[:200]!r}")
    return first, tokens


def load(port: int, model: str, form: Mapping[str, Any], clients: int, numbers: range) -> Load:
    """Have many clients ask at once."""
    seen, left, lock = Load(), iter(numbers), threading.Lock()

    def client() -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            ask(port, body_of(number, model, form), seen)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.seconds = time.perf_counter() - began
    return seen


def beside_rival(file: Path, clients: int, requests: int, rounds: int = 2) -> int:
    """Load both servers in turns, and print what was seen; 1 if a request was lost."""
    if not RIVAL.exists():
        print("llama-cpp-python's server is not there: scripts/reference_env llama-server")
        return 1
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    told: dict[str, list[Load]] = {"ours": [], "llama-cpp-python": []}
    with listening(ours(file, 8391), 8391) as our_port, listening(rivals(file, 8392), 8392) as rival_port:
        kinds = {
            "ours": (our_port, str(file), schema),
            "llama-cpp-python": (rival_port, "m", {"type": "json_object", "schema": SCHEMA}),
        }
        for name, (port, model, form) in kinds.items():
            load(port, model, form, WARM, range(WARM if name == "ours" else 2))
        for number in range(rounds):
            for name, (port, model, form) in kinds.items():
                numbers = range(1000 * (number + 1), 1000 * (number + 1) + requests // rounds)
                told[name].append(load(port, model, form, clients, numbers))
                print(f"{name}: {told[name][-1].summary}", flush=True)
    rates = {name: max(each.tokens / each.seconds for each in seen) for name, seen in told.items()}
    late = {name: min(quantiles(each.first, n=20)[18] for each in seen) for name, seen in told.items()}
    print(
        f"Ours beside it, the better round of each: {rates['ours'] / rates['llama-cpp-python']:.2f} times the tokens a "
        f"second, {late['ours'] / late['llama-cpp-python']:.2f} times the p95 of the first token."
    )
    lost = [error for seen in told.values() for each in seen for error in each.lost]
    print("\n".join(lost[:5]))
    return 1 if lost else 0
