"""Links, asked of a server on this machine that is taken for a public one; and those that are not asked at all."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from langchain_gemma_jax.errors import MediaAccessError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.web_links import LinkReader, is_public
from langchain_gemma_jax.stopping import Stop, StoppedError

AT = "messages[0].content[0]"


class Server(ThreadingHTTPServer):
    """Answers by the path that is asked."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.names: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def here(self) -> str:
        return f"http://public.example:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.names.append(self.headers["Host"])
        answer: Callable[[], None] = {
            "/image": lambda: self._say(200, b"image"),
            "/query?a=b": lambda: self._say(200, b"query"),
            "/gone": lambda: self._say(404, b""),
            "/large": lambda: self._say(200, b"a" * 3000),
            "/says-large": lambda: self._say(200, b"a", length=10**12),
            "/endless": self._endless,
            "/short": lambda: self._say(200, b"abc", length=10),
            "/packed": lambda: self._say(200, b"abc", **{"Content-Encoding": "gzip"}),
            "/slow-head": self._slow_head,
            "/slow-body": self._slow_body,
        }.get(self.path, self._redirect)
        answer()

    def _say(self, status: int, body: bytes, *, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body) if length is None else length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _redirect(self) -> None:
        place = self.path.removeprefix("/to?").replace("HERE", self.server.here)
        self._say(302, b"", Location=place)

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        self._drip(b"a" * 4096, 0.0)

    def _slow_head(self) -> None:
        self._drip(b"H", 0.05)

    def _slow_body(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self._drip(b"a", 0.05)

    def _drip(self, piece: bytes, pause: float) -> None:
        try:
            for _ in range(10_000):
                self.wfile.write(piece)
                time.sleep(pause)
        except OSError:
            return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


NAMES = {"public.example": ["127.0.0.1"], "private.example": ["10.0.0.1"], "both.example": ["127.0.0.1", "10.0.0.1"]}


def resolve(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002
    """Names that mean something here alone."""
    addresses = NAMES.get(host) or [host if ":" in host else socket.inet_ntoa(socket.inet_aton(host))]
    return [(socket.AF_INET, type, 6, "", (address, port)) for address in addresses]


READER = LinkReader(allows=lambda address: str(address) == "127.0.0.1", resolve=resolve)


def read(link: str, *, reader: LinkReader = READER, most: int = 1000, seconds: float = 60.0) -> bytes:
    return reader.read(link, most=most, seconds=seconds, redirects=3, at=AT)


def test_what_is_at_a_link(server):
    assert read(f"{server.here}/image") == b"image"
    assert read(f"{server.here}/query?a=b#there") == b"query"
    assert server.names == [f"public.example:{server.server_port}"] * 2, "the name is told, and the address is asked"
    assert read(f"{server.here}/to?HERE/image") == b"image"
    assert read(f"{server.here}/to?/image") == b"image"


@pytest.mark.parametrize(
    ("path", "error", "said"),
    [
        ("/gone", UnreadableMediaError, "says 404"),
        ("/large", MediaLimitError, "more than the 1,000"),
        ("/says-large", MediaLimitError, "more than the 1,000"),
        ("/endless", MediaLimitError, "more than the 1,000"),
        ("/short", UnreadableMediaError, "too early|IncompleteRead"),
        ("/packed", UnreadableMediaError, "packs"),
        ("/slow-head", MediaLimitError, "longer than it may"),
        ("/slow-body", MediaLimitError, "longer than it may"),
        ("/to?http://private.example/image", MediaAccessError, "no address of the public"),
        ("/to?http://127.0.0.2/image", MediaAccessError, "no address of the public"),
        ("/to?http://2130706434/image", MediaAccessError, "no address of the public"),  # 127.0.0.2 as a number
        ("/to?http://[::1]/image", MediaAccessError, "no address of the public"),
        ("/to?file:///etc/passwd", MediaAccessError, "such as https"),
        ("/to?gopher://public.example/", MediaAccessError, "such as https"),
        ("/to?http://me:word@public.example/", MediaAccessError, "a name or a password"),
        ("/to?HERE/to?HERE/to?HERE/to?HERE/to?HERE/image", MediaLimitError, "more than 3 times"),
    ],
)
def test_what_is_refused_once_it_was_asked(server, path, error, said):
    if path.count("HERE") > 1:
        path = "/to?/loop"  # a place that leads to itself
    with pytest.raises(MediaError, match=said) as found:
        read(server.here + path, seconds=0.6 if "slow" in path else 60.0)
    assert type(found.value) is error
    assert str(found.value).startswith(AT)
    assert all(asked in {path, "/loop"} for asked in server.asked)


@pytest.mark.parametrize(
    "link",
    [
        "http://private.example/",
        "http://both.example/",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost.example:99999/",
        "http:///image",
        "https://exa mple.org/",
        "https://example.org/a\r\nX-Injected: 1",
        "https://user@example.org/",
        "https://пример.example/",
    ],
)
def test_what_is_never_asked(server, link):
    with pytest.raises(MediaAccessError):
        read(link)
    assert server.asked == []


def test_this_machine_is_never_asked(server):
    for host in ("127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1"):
        with pytest.raises(MediaAccessError, match="no address of the public"):
            LinkReader(resolve=resolve).read(
                f"http://{host}:{server.server_port}/image", most=9, seconds=60, redirects=0, at=AT
            )
    assert server.asked == []


def test_a_name_is_resolved_once(server):
    """A name's owner may give another address each time: the address that was checked is the one asked."""
    told: list[str] = []

    def changing(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002
        told.append("127.0.0.1" if not told else "10.0.0.1")
        return [(socket.AF_INET, type, 6, "", (told[-1], port))]

    reader = LinkReader(allows=READER.allows, resolve=changing)
    assert read(f"{server.here}/image", reader=reader) == b"image"
    assert told == ["127.0.0.1"]


def test_a_name_that_nobody_resolves_takes_no_longer_than_it_may():
    told = threading.Event()

    def hanging(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002
        told.wait(300)
        return []

    with pytest.raises(MediaLimitError, match="longer than it may"):
        read("http://public.example/", reader=LinkReader(resolve=hanging), seconds=0.2)
    told.set()


def test_a_resolver_that_says_nonsense_has_found_nothing():
    def failing(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002
        raise ValueError("of a resolver's own")

    said = [[()], [(2, 1, 6, "", ("not an address", 80))], [(2, 1, 6, "", ())], [None], [7], 7, None, "127.0.0.1"]
    for resolver in (failing, *(lambda *_, told=told, **__: told for told in said)):
        with pytest.raises(UnreadableMediaError, match=r"no machine called 'public\.example'"):
            read("http://public.example/", reader=LinkReader(resolve=resolver))


def test_whoever_waits_for_a_link_is_stopped(server):
    told, asked = threading.Event(), threading.Event()

    def hanging(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002
        asked.set()
        told.wait(300)
        return []

    ways = [("/", LinkReader(resolve=hanging), asked.is_set), ("/slow-body", READER, lambda: bool(server.asked))]
    for path, reader, begun in ways:
        stop, raised = Stop(), []

        def wait_for_link(path=path, reader=reader, stop=stop, raised=raised) -> None:
            with stop.over_this_work(), pytest.raises(StoppedError):
                read(server.here + path, reader=reader)
            raised.append(True)

        waiting = threading.Thread(target=wait_for_link)
        waiting.start()
        while not begun():
            time.sleep(0.001)
        stop.ask()
        waiting.join()
        assert raised
    told.set()


def test_which_addresses_are_public():
    for address in ("8.8.8.8", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"):
        assert is_public(ipaddress.ip_address(address)), address
    for address in (
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fd12::1",
        "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe",
    ):  # fmt: skip
        assert not is_public(ipaddress.ip_address(address)), address
