"""A replica's server that offers prefixes as the real one does, and can be slow, wrong or gone.

Run as ``python -m tests.engine.prefix_store.peer_server FOLDER`` it offers those of a folder until it is killed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from langchain_gemma_jax.engine.prefix_store.peer_http import PATH
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_offers import PrefixOffers
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from tests.engine.prefix_store.example_prefixes import KEY


class PeerServer(ThreadingHTTPServer):
    """The server of one replica, on the loopback."""

    daemon_threads = True

    def __init__(self, folder: Path, key: bytes = KEY, me: str = "peer") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.offers = PrefixOffers(PrefixFolder(folder, 2**30), Encrypted(key).peer_token, me)
        self.asked: list[str] = []
        self.changed: Callable[[bytes], bytes] = lambda body: body  # what becomes of a body
        self.drips = self.waits = False
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that left."""


class _Handler(BaseHTTPRequestHandler):
    server: PeerServer

    def do_GET(self) -> None:
        server, offers, what = self.server, self.server.offers, self.path.removeprefix(PATH)
        server.asked.append(what)
        if server.waits:
            server.over.wait()
        told = self.headers.get("authorization", "").removeprefix("Bearer ")
        tag = offers.tag()
        if not offers.knows(told):
            self._send(401, b"", tag)
        elif what.endswith("-"):
            same = self.headers.get("if-none-match") == tag
            self._send(304 if same else 200, b"" if same else offers.headers(what), tag)
        else:
            first, last = map(int, self.headers["range"].removeprefix("bytes=").split("-"))
            found = offers.part(what, first, last + 1)
            self._send(404 if found is None else 206, found or b"", tag)

    def _send(self, status: int, body: bytes | None, tag: str) -> None:
        size = len(body or b"")
        body = self.server.changed(body or b"")
        self.send_response(status)
        self.send_header("etag", tag)
        self.send_header("content-length", str(size if self.server.drips else len(body)))
        self.end_headers()
        if not self.server.drips:
            self.wfile.write(body)
            return
        for at in range(len(body)):  # each byte in time, and the whole never
            self.wfile.write(body[at : at + 1])
            if self.server.over.wait(0.05):
                return

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def peer(folder: Path, **how: object) -> Iterator[PeerServer]:
    """A running replica's server."""
    server = PeerServer(folder, **how)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with peer(Path(sys.argv[1])) as running:
        sys.stdout.write(running.url + "\n")
        sys.stdout.flush()
        threading.Event().wait()
