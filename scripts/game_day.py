"""A game day: breaks a real server in ten ways, one after the other, and says what was seen.

    python scripts/game_day.py            # prints a table
    python scripts/game_day.py --page     # writes it into docs/objectives.md#game-day

The server is ``gemma-jax serve`` with an embedded model, a process of its own on this machine; nothing else is touched.
It exits with 1 if something else was seen than should be.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "objectives.md"
BEGIN, END = "<!-- seen: written by python scripts/game_day.py --page -->", "<!-- seen: end -->"
MODEL, CONNECTIONS = "sprout-s", 8
LONG = 300.0  # seconds to wait for what has to come
LONG_ANSWER = {
    "type": "json_schema",
    "json_schema": {
        "name": "numbers",
        "schema": {
            "type": "object",
            "properties": {
                "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 120, "maxItems": 120}
            },
            "required": ["numbers"],
        },
    },
}


class Unexpected(Exception):  # noqa: N818  it is what a game day looks for
    """Something else was seen than should be."""


def expect(is_so: object, otherwise: str) -> None:
    """See that something is so.

    Raises:
        Unexpected: it is not.
    """
    if not is_so:
        raise Unexpected(otherwise)


class Server:
    """A server in a process of its own, and what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "server.log"
        self.programs, self.port = folder / "cache" / "xla", free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, and wait until it is ready."""
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "JAX_PLATFORMS": "cpu",
            "GEMMA_JAX_CACHE_DIR": str(self.folder / "cache"),
            "GEMMA_JAX_COMPILE_CACHE": str(self.programs),
        }
        command = [sys.executable, str(ROOT / "langchain_gemma_jax_command.py"), "serve", MODEL, "--host=127.0.0.1"]
        command += [f"--port={self.port}", "--max-context=512", f"--max-connections={CONNECTIONS}", "--drain=60"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder)
        self.until(lambda: self.status("/ready") == 200, "it is ready")

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: int) -> None:
        """Send the process a signal."""
        if self.process is None:
            raise Unexpected("no server was started")
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Have the process end, and return its status."""
        self.send(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end of the process, and return its status; -1: there is none."""
        return -1 if self.process is None else self.process.wait(LONG)

    def until(self, is_so: Callable[[], object], what: str) -> None:
        """Wait until something is so.

        Raises:
            Unexpected: it does not come, or the server has ended.
        """
        until = time.monotonic() + LONG
        while not is_so():
            expect(self.alive, f"the server ended before {what}:\n{self.log.read_text()[-2000:]}")
            expect(time.monotonic() < until, f"it took too long until {what}")
            time.sleep(0.05)

    def request(
        self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, timeout: float = LONG
    ) -> tuple[int, bytes]:
        """Return the status and the body of a response.

        Raises:
            OSError: nobody answers.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with closing(connection):
            connection.request("GET" if body is None else "POST", path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def status(self, path: str, timeout: float = LONG) -> int:
        """Return the status of a page; 0: nobody answers."""
        try:
            return self.request(path, timeout=timeout)[0]
        except (OSError, http.client.HTTPException):
            return 0

    def ask(self, text: str = "Hello!", headers: dict[str, str] | None = None, **more: object) -> tuple[int, str]:
        """Ask for an answer, and return the status with what was said, or with the error's code."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "temperature": 0} | more
        return self.said(json.dumps(body).encode(), headers)

    def said(self, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str]:
        """Send a body, and return the status with what was said, or with the error's code."""
        kind = {"content-type": "application/json", **(headers or {})}
        status, answer = self.request("/v1/chat/completions", body, kind)
        found = json.loads(answer)
        return status, str(found["choices"][0]["message"]["content"] if status == 200 else found["error"]["code"])

    def works(self) -> str:
        """Ask as anybody would, and return the answer.

        Raises:
            Unexpected: it is not answered well.
        """
        status, said = self.ask(max_tokens=8)
        expect(status == 200, f"an ordinary call got {status}: {said}")
        return str(said)

    @contextmanager
    def streaming(self) -> Iterator[socket.socket]:
        """Have a long answer under way, of which the first words have come."""
        body = json.dumps(
            {
                "model": MODEL,
                "messages": [{"role": "user", "content": "Numbers!"}],
                "stream": True,
                "max_tokens": 460,
                "response_format": LONG_ANSWER,
            }
        ).encode()
        with socket.create_connection(("127.0.0.1", self.port), LONG) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
            connection.sendall(f"{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode() + body)
            seen = b""
            while seen.count(b"data:") < 3:
                part = connection.recv(65536)
                expect(part, f"the answer broke off before it began: {seen[-500:]!r}")
                seen += part
            yield connection

    def counted(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples with these labels."""
        lines = self.request("/metrics")[1].decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [line for line in lines if re.match(rf"{name}[ {{]", line) and all(each in line for each in wanted)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


# The faults: each breaks something, looks, and gives what was seen.


def _a_caller_leaves(server: Server) -> str:
    cancelled = server.counted("gemma_jax_requests_by_result_total", result="cancelled")
    with server.streaming():
        pass
    server.until(
        lambda: server.counted("gemma_jax_requests_by_result_total", result="cancelled") == cancelled + 1,
        "the call counts as cancelled",
    )
    server.until(lambda: server.counted("gemma_jax_requests_running") == 0, "nothing runs")
    server.works()
    return '`requests_by_result_total{result="cancelled"}` + 1, no request runs, the next call is answered'


def _too_many_connections(server: Server) -> str:
    held = [socket.create_connection(("127.0.0.1", server.port), LONG) for _ in range(CONNECTIONS)]
    try:
        for each in held:
            each.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n")  # a head that does not end
        server.until(lambda: server.status("/v1/models") == 429, "one more is refused")
        expect(server.status("/health") == 200, "probes are refused too")
    finally:
        for each in held:
            each.close()
    server.until(lambda: server.status("/v1/models") == 200, "there is room again")
    server.works()
    return "429 for one more, probes are still answered, and 200 as soon as one is closed"


def _half_a_request(server: Server) -> str:
    with socket.create_connection(("127.0.0.1", server.port), LONG) as connection:
        connection.sendall(
            b'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 500\r\n\r\n{"model": '
        )
        server.works()
    return "others are answered meanwhile"


def _a_deadline_that_is_too_short(server: Server) -> str:
    status, code = server.ask(headers={"x-deadline-s": "0.0001"}, max_tokens=8)
    expect((status, code) == (504, "deadline_exceeded"), f"it got {status}, {code}")
    server.works()
    return "504 `deadline_exceeded`, the next call is answered"


def _a_conversation_that_is_too_long(server: Server) -> str:
    status, code = server.ask("and so on " * 2000, max_tokens=8)
    expect((status, code) == (400, "context_length_exceeded"), f"it got {status}, {code}")
    server.works()
    return "400 `context_length_exceeded`, the next call is answered"


def _no_json(server: Server) -> str:
    status, code = server.said(b'{"model": ')
    expect((status, code) == (400, "invalid_request"), f"it got {status}, {code}")
    server.works()
    return "400 `invalid_request`, the next call is answered"


def _a_process_that_stands_still(server: Server) -> str:
    server.send(signal.SIGSTOP)
    try:
        expect(server.status("/health", timeout=1.0) == 0, "a process that is stopped answered")
    finally:
        server.send(signal.SIGCONT)
    server.until(lambda: server.status("/health") == 200, "it goes on")
    server.works()
    return "`/health` does not answer (a liveness probe fails); the server continues when the process does"


def _told_to_end_in_the_middle(server: Server) -> str:
    with server.streaming() as connection:
        server.send(signal.SIGTERM)
        while server.alive and server.status("/ready") == 200:
            time.sleep(0.02)
        rest = b""
        while part := connection.recv(65536):
            rest += part
    expect(b"data: [DONE]" in rest, "the answer broke off")
    code = server.ended()
    expect(code == 0, f"it exited with {code}")
    server.start()
    expect(server.counted("gemma_jax_compiles_total") == 0, "the next process compiled")
    return "the answer is finished, new calls are refused, exit status 0; the next process compiles nothing"


def _killed_in_the_middle(server: Server) -> str:
    with server.streaming() as connection:
        server.end(signal.SIGKILL)
        rest = b""
        with suppress(ConnectionError):
            while part := connection.recv(65536):
                rest += part
    expect(b"[DONE]" not in rest, "the answer was whole before it was killed")
    expect(server.status("/health") == 0, "somebody answers")
    server.start()
    compiled = server.counted("gemma_jax_compiles_total")
    expect(compiled == 0, f"the next process compiled {compiled:g} programs")
    server.works()
    return "the answer breaks off (`ServerUnreachableError`, retryable); the next process compiles nothing"


def _damaged_programs(server: Server) -> str:
    before = server.works()
    server.end()
    files = [path for path in server.programs.rglob("*") if path.is_file() and path.stat().st_size > 4096]
    expect(files, "there is no file of a program")
    for path in files:
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(b"\0damaged\0" * 8)
    server.start()
    expect(server.counted("gemma_jax_compiles_total") > 0, "damaged programs were used")
    expect(server.works() == before, "the answer changed")
    return "each is deleted and compiled again (`compiles_total` > 0); the same answer"


FAULTS: dict[str, tuple[Callable[[Server], str], str]] = {
    "a caller disconnects during its answer": (_a_caller_leaves, "its row is free within a step"),
    "more connections than may be open": (_too_many_connections, "429, and the others are not affected"),
    "a caller sends half a request and waits": (_half_a_request, "no other request waits for it"),
    "a deadline that nothing can meet": (_a_deadline_that_is_too_short, "an error that says so, before the work"),
    "a conversation longer than the context": (_a_conversation_that_is_too_long, "an error with the limit"),
    "a body that is not JSON": (_no_json, "an error, at once"),
    "the process is stopped (SIGSTOP)": (_a_process_that_stands_still, "probes see it"),
    "SIGTERM during an answer": (_told_to_end_in_the_middle, "the answer is finished"),
    "kill -9 during an answer": (_killed_in_the_middle, "a retryable error, and a warm restart"),
    "every compiled program on the disk is damaged": (_damaged_programs, "slower, never wrong"),
}


def table(rows: list[tuple[str, str, str]]) -> str:
    """Return what was broken and seen, as Markdown."""
    lines = ["| broken | what should be seen | what was seen |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def run() -> tuple[list[tuple[str, str, str]], int]:
    """Break everything, one after the other. Return what was seen, and how much of it was unexpected."""
    rows, unexpected = [], 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            server.start()
            server.works()
            for name, (break_it, wanted) in FAULTS.items():
                try:
                    seen = break_it(server)
                except Unexpected as error:
                    seen, unexpected = f"UNEXPECTED: {error}", unexpected + 1
                    if not server.alive:
                        server.start()
                print(f"{name}: {seen}", flush=True)
                rows.append((name, wanted, seen))
        finally:
            if server.alive:
                server.end(signal.SIGKILL)
    return rows, unexpected


def page(written: str, rows: list[tuple[str, str, str]]) -> str:
    """The page with what was seen this time."""
    before, _, rest = written.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(rows)}\n{END}{after}"


def main() -> int:
    """Run the game day; the status is 1 if something unexpected was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help=f"write what was seen into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    rows, unexpected = run()
    print()
    print(table(rows))
    if asked.page and not unexpected:
        PAGE.write_text(page(PAGE.read_text(), rows))
    return min(unexpected, 1)


if __name__ == "__main__":
    sys.exit(main())
