"""The worst bodies from many clients at once, on each API of a server: who has to wait, and how much memory it takes.

    python benchmarks/serving/large_bodies.py
    python benchmarks/serving/large_bodies.py --clients 20 --mib 16 --only /v1/messages

A server with an embedded model runs as a process of its own, its clients in another, and a probe in a third asks for
/health all the time. A line for each API and body says how they were answered, the longest that the probe waited, how
many callbacks of the event loop took more than 50 ms (of all time, and of the loop's own processor time), and the
memory that the server took beside what it had, as a multiple of the bodies. Then it is told to end while work is under
way, and says how long that took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

ROOT = Path(__file__).parents[2]
BLOCK = 0.05  # seconds of a callback that keep others waiting
MODEL = "sprout-s"
CHAT, MESSAGES, RESPONSES, NATIVE, VECTORS = (
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/gemma-jax/2/answer",
    "/v1/embeddings",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/serving/large_bodies.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--mib", type=float, default=16.0, help="of each body")
    parser.add_argument("--only", default="", help="an API's path")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        return serve(*options.serve)
    if options.ask:
        port, path, kind, size = options.ask
        print(json.dumps(asyncio.run(ask(int(port), path, BODIES[kind](path, int(size)), options.clients))))
        return 0
    if options.probe:
        return probe(int(options.probe))
    size = int(options.mib * 2**20)
    with tempfile.TemporaryDirectory() as scratch:
        for path in (CHAT, MESSAGES, RESPONSES, NATIVE, VECTORS):
            if options.only in path:
                measure(Path(scratch), path, size, options.clients)
        ending(Path(scratch), size)
    return 0


# What is sent.


def _body(path: str, filling: Callable[[int], str], size: int, where: str = "messages", rest: str = "") -> bytes:
    head = {
        CHAT: f'{{"model":"{MODEL}",{rest}"{where}":',
        MESSAGES: f'{{"model":"{MODEL}","max_tokens":9,{rest}"{where}":',
        RESPONSES: f'{{"model":"{MODEL}",{rest}"{"input" if where == "messages" else where}":',
        NATIVE: f'{{"options":{{"model":"{MODEL}"}},{rest}"{where}":',
        VECTORS: f'{{"model":"{MODEL}",{rest}"{"input" if where == "messages" else where}":',
    }[path]
    return (head + filling(size - len(head) - 1) + "}").encode()


def _many(item: str) -> Callable[[int], str]:
    return lambda size: "[" + ",".join([item] * ((size - 2) // (len(item) + 1))) + "]"


def _say(path: str) -> tuple[str, str]:
    role = '"type":"human"' if path == NATIVE else '"role":"user"'
    return (f'[{{{role},"content":', "}]") if path != VECTORS else ("[", "]")


def _texts(text: str, last: str = "") -> Callable[[str, int], bytes]:
    def body(path: str, size: int) -> bytes:
        begin, end = _say(path)
        return _body(path, lambda room: f'{begin}"{text * ((room - 40) // len(text.encode()))}{last}"{end}', size)

    return body


def _messages(path: str, size: int) -> bytes:
    begin, end = _say(path)
    return _body(path, _many(f'{begin[1:]}"a"{end[:-1]}'), size)


def _just_few_enough(path: str, size: int) -> bytes:
    begin, end = _say(path)
    count = 2048 if path == VECTORS else 10_000
    text = "ab " * ((size // count - 60) // 3)
    return _body(path, lambda _: "[" + ",".join([f'{begin[1:]}"{text}"{end[:-1]}'] * count) + "]", size)


def _blocks(path: str, size: int) -> bytes:
    begin, end = _say(path)
    kind = "input_text" if path == RESPONSES else "text"
    return _body(path, lambda room: begin + _many(f'{{"type":"{kind}","text":"a"}}')(room - 60) + end, size)


def _inside(path: str, size: int) -> bytes:
    """JSON in a string in JSON: what a call was made with, or a tool's result."""
    many = json.dumps(f'{{"a":{_many("[]")(size - 400)}}}')
    call = {
        CHAT: '[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function",'
        f'"function":{{"name":"f","arguments":{many}}}}}]}}]',
        MESSAGES: '[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":'
        f'"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"1","content":{many}'
        "}]}]",
        RESPONSES: f'[{{"type":"function_call","call_id":"1","name":"f","arguments":{many}}}]',
        NATIVE: '[{"type":"human","content":"a"},{"type":"ai","content":"","tool_calls":[{"id":"1","name":"f","args"'
        f':{{}},"type":"tool_call"}}]}},{{"type":"tool","tool_call_id":"1","content":{many}}}]',
        VECTORS: f"[{many}]",
    }[path]
    return _body(path, lambda _: call, size)


def _field(name: str, item: str) -> Callable[[str, int], bytes]:
    return lambda path, size: _body(path, _many(item), size, name)


def _biases(path: str, size: int) -> bytes:
    pairs = ",".join(f'"{number:07}":1' for number in range((size - 200) // 12))
    return _body(path, lambda _: f"{{{pairs}}}", size, "logit_bias")


BODIES: dict[str, Callable[[str, int], bytes]] = {
    "messages of one letter": _messages,
    "as many messages as may be": _just_few_enough,
    "blocks of one letter": _blocks,
    "tools": _field("tools", '{"type":"function","function":{"name":"f","parameters":{}}}'),
    "stops": _field("stop", '"a"'),
    "biases": _biases,
    "lists": _field("messages", "[]"),
    "one text": _texts("ab cd "),
    "one text of escapes": _texts("\\n"),
    "one wide text": _texts("a", "\U0001f600"),
    "one text without spaces": _texts("x"),
    "JSON inside": _inside,
}


async def ask(port: int, path: str, body: bytes, clients: int) -> dict[str, int]:
    """Have so many clients ask the same at once; return how often which status came."""

    async def one() -> str:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = (
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode())
            for at in range(0, len(body), 1 << 18):
                writer.write(body[at : at + (1 << 18)])
                await writer.drain()
            answer = await reader.read(1 << 16)
            writer.close()
            return answer.split(b" ", 2)[1].decode()
        except OSError as error:
            return type(error).__name__

    return Counter(await asyncio.gather(*(one() for _ in range(clients))))


def probe(port: int) -> int:
    """Ask for /health until the input ends, and say how long it took at most."""
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    worst = 0.0
    while not over.is_set():
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), 300) as line:
            line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            line.recv(4096)
        worst = max(worst, time.perf_counter() - began)
        time.sleep(0.02)
    print(worst)
    return 0


def serve(port: str, told: str) -> int:
    """Serve, and write into a file how many callbacks of the event loop took long."""
    from langchain_gemma_jax.cli.command import main as command

    run, long = asyncio.Handle._run, Counter[str]()  # noqa: SLF001  the one place that all callbacks come by

    def timed(handle: asyncio.Handle) -> None:
        began, own = time.perf_counter(), time.thread_time()
        run(handle)
        took, own = time.perf_counter() - began, time.thread_time() - own
        if took > BLOCK:
            long["all"] += 1
            long["own"] += own > BLOCK
            long["worst"] = max(long["worst"], round(took * 1000))
            Path(told).write_text(json.dumps(long))

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]  # noqa: SLF001
    return command(["serve", MODEL, "--port", port, "--drain", "3"])


# What comes of it.


class Server:
    """A server, as a process."""

    def __init__(self, scratch: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self._told = scratch / f"{self.port}.json"
        self._log = scratch / f"{self.port}.log"
        command = [sys.executable, __file__, "--serve", str(self.port), str(self._told)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=os.environ)
        while not self._ready():
            time.sleep(0.2)
        self.most = self.before = self.resident()
        self._blocks = self.blocks()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as line:
                line.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return b" 200 " in line.recv(4096)
        except OSError:
            return False

    def blocks(self) -> dict[str, int]:
        return json.loads(self._told.read_text()) if self._told.exists() else {"all": 0, "own": 0, "worst": 0}

    def new_blocks(self) -> str:
        now, before = self.blocks(), self._blocks
        self._blocks = now
        return f"{now['all'] - before['all']} ({now['own'] - before['own']})"

    def resident(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            try:
                self.most = max(self.most, self.resident())
            except OSError:
                return

    def end(self) -> float:
        """End it; return how long that took."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self._over.set()
        return time.perf_counter() - began

    @property
    def log(self) -> str:
        return self._log.read_text()


def _child(*arguments: str, **how: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, *arguments], text=True, stdout=subprocess.PIPE, **how)  # type: ignore[call-overload,no-any-return]


def measure(scratch: Path, path: str, size: int, clients: int) -> None:
    """Send each body to one API."""
    server = Server(scratch)
    print(f"{path}\n  {'body':28} {'s':>5} {'/health, ms':>11} {'blocks (own)':>13} {'memory':>7}  answers", flush=True)
    probing = _child("--probe", str(server.port), stdin=subprocess.PIPE)
    time.sleep(5)
    waited, _ = probing.communicate()
    print(f"  {'nothing':28} {5:5.1f} {float(waited) * 1000:11.0f} {server.new_blocks():>13}", flush=True)
    for kind in BODIES:
        server.most = server.resident()
        probing = _child("--probe", str(server.port), stdin=subprocess.PIPE)
        began = time.perf_counter()
        asking = _child("--ask", str(server.port), path, kind, str(size), "--clients", str(clients))
        answers, _ = asking.communicate()
        took = time.perf_counter() - began
        waited, _ = probing.communicate()
        more = (server.most - server.before) / (clients * size)
        found = f"{took:5.1f} {float(waited) * 1000:11.0f} {server.new_blocks():>13} {more:6.2f}x  {answers.strip()}"
        print(f"  {kind:28} {found}", flush=True)
    print(f"  ended after {server.end():.1f} s, with status {server.process.returncode}; log: {len(server.log)} bytes")
    if "Traceback" in server.log:
        print(server.log)


def ending(scratch: Path, size: int) -> None:
    """End a server while it works on bodies of each kind."""
    for kind in BODIES:
        server = Server(scratch)
        asking = _child("--ask", str(server.port), CHAT, kind, str(size), "--clients", "8")
        time.sleep(1.0)
        took = server.end()
        answers, _ = asking.communicate()
        print(f"ended beside {kind}: {took:.1f} s, status {server.process.returncode}, {answers.strip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
