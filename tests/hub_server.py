"""A small Hugging Face Hub on 127.0.0.1: as much of the real one's HTTP interface as huggingface_hub's client uses.

    with HubServer() as hub:
        commit = hub.add("org/model", {"config.json": b"{}", "model.safetensors": b"..."})
        os.environ["HF_ENDPOINT"] = hub.url

Repositories have commits, branches and tags; they can be gated or private. The server can be told to
misbehave: to cut a connection, to answer with an error, to say nothing, to lie about a length. It
remembers every request.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
TREE = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)")
FILE = re.compile(r"/(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")


@dataclass
class Repository:
    """One model: what its commits hold, and what its branches and tags point at."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False  # anyone sees its list of files; the files are for those on the list
    private: bool = False  # nobody else sees that it exists
    tokens: frozenset[str] = frozenset()  # those who may read it, if it is gated or private


@dataclass(frozen=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    token: str | None
    range: str | None


@dataclass
class Fault:
    """A fault of requests whose ``"METHOD /path"`` holds ``where``."""

    where: str
    times: int  # how often it still happens
    status: int | None = None  # answer with this error
    message: str = "as the test wants it"  # and say this
    without: str | None = None  # leave this header out
    cut_after: int | None = None  # close the connection after so many bytes of the body
    silent: bool = False  # do not answer at all
    drip: float | None = None  # send the body byte by byte, with so many seconds in between
    body: bytes | None = None  # answer with this in place of the file, and with its length
    action: Callable[[], object] | None = None  # then answer as if nothing had happened


class HubServer:
    """The server, in a thread of its own. ``url`` is its endpoint."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.known_tokens: set[str] = set()
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.drips = 0  # answers that drip just now: see ``dripping``
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuse every connection from now on. May be called twice."""
        if not self.stopped.is_set():
            self.stopped.set()
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()

    def add(
        self,
        model_id: str,
        files: Mapping[str, bytes],
        *,
        branch: str = "main",
        gated: bool = False,
        private: bool = False,
        tokens: tuple[str, ...] = (),
    ) -> str:
        """Commit files to a branch, in place of all that it held. Returns the commit."""
        with self.lock:
            repository = self.repositories.setdefault(model_id, Repository())
            content = [(name, hashlib.sha1(data).hexdigest()) for name, data in sorted(files.items())]
            commit = hashlib.sha1(json.dumps([model_id, branch, content]).encode()).hexdigest()
            repository.commits[commit] = dict(files)
            repository.refs[branch] = commit
            repository.gated, repository.private = gated, private
            repository.tokens = frozenset(tokens)
            self.known_tokens |= repository.tokens
        return commit

    def fail(self, where: str, times: int = 1, **what: object) -> None:
        """Let the next requests fail that contain ``where``; see ``Fault``."""
        self.faults.append(Fault(where, times, **what))  # type: ignore[arg-type]

    def requests(self, where: str = "") -> list[Seen]:
        """The requests so far whose ``"METHOD /path"`` contains ``where``."""
        with self.lock:
            return [seen for seen in self.seen if where in f"{seen.method} {seen.path}"]

    def forget_requests(self) -> None:
        with self.lock:
            self.seen.clear()

    @contextmanager
    def dripping(self) -> Iterator[None]:
        """While an answer drips. ``drips`` counts those that do."""
        with self.lock:
            self.drips += 1
        try:
            yield
        finally:
            with self.lock:
                self.drips -= 1

    def next_fault(self, request: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.where in request and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"  # connections stay open, as the real one's do
    disable_nagle_algorithm = True  # else each answer's second half waits 40 ms for the first to be acknowledged

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: a test prints what it means to print."""

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def answer(self) -> None:
        if self.hub.stopped.is_set():  # a connection from before
            self.close_connection = True
            return
        path = urlsplit(self.path).path
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        token = token if scheme == "Bearer" else ""
        with self.hub.lock:
            self.hub.seen.append(Seen(self.command, self.path, token or None, self.headers.get("Range")))
        fault = self.hub.next_fault(f"{self.command} {self.path}")
        if fault and fault.action:
            fault.action()
        if fault and fault.silent:
            self.hub.stopped.wait()
            self.close_connection = True
        elif fault and fault.status:
            self.refuse(fault.status, "", fault.message)
        elif match := TREE.fullmatch(path):
            self.with_commit(match, token, self.send_tree, fault)
        elif match := API.fullmatch(path):
            self.with_commit(match, token, self.send_info, fault)
        elif match := FILE.fullmatch(path):
            self.with_commit(match, token, self.send_file, unquote(match["name"]), token, fault)
        else:
            self.refuse(404, "", "no such page")

    def with_commit(self, match: re.Match[str], token: str, send: Callable[..., None], *more: object) -> None:
        """Call ``send`` with the repository and the commit, if there are such and the token may see them."""
        if token and token not in self.hub.known_tokens:
            self.refuse(401, "", "Invalid credentials in Authorization header")
            return
        repository = self.hub.repositories.get(match["id"])
        if repository is None or (repository.private and token not in repository.tokens):
            self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
            return
        revision = unquote(match["revision"] or "main")
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            send(repository, commit, *more)

    def send_info(self, repository: Repository, commit: str, fault: Fault | None) -> None:
        if fault and fault.body is not None:
            self.send(200, fault.body, {"Content-Type": "text/html"})
            return
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
            for name, data in repository.commits[commit].items()
        ]
        info = {"id": "model", "sha": commit, "siblings": siblings, "private": repository.private}
        self.send_json(info, drip=fault and fault.drip)

    def send_tree(self, repository: Repository, commit: str, fault: Fault | None) -> None:
        if fault and fault.body is not None:
            self.send(200, fault.body, {"Content-Type": "application/json"})
            return
        self.send_json(
            [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in repository.commits[commit].items()
            ]
        )

    def send_file(self, repository: Repository, commit: str, name: str, token: str, fault: Fault | None) -> None:
        if repository.gated and token not in repository.tokens:
            self.refuse(403 if token else 401, "GatedRepo", "Access to this model is restricted")
            return
        data = repository.commits[commit].get(name)
        if data is None:
            self.refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
            return
        # The tag names the content; to a client it means nothing else.
        headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if fault and fault.body is not None:
            data = fault.body
        headers["X-Linked-Size"] = str(len(data))
        if fault and fault.without:
            del headers[fault.without]
        status = 200
        if wanted := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or ""):
            first = int(wanted[1])
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
            status, data = 206, data[first:]
        self.send(status, data, headers, cut_after=fault.cut_after if fault else None, drip=fault and fault.drip)

    def send_json(self, value: object, drip: float | None = None) -> None:
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"}, drip=drip)

    def refuse(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        said = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.send(status, json.dumps({"error": message}).encode(), {**said, **(headers or {})})

    def send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str],
        cut_after: int | None = None,
        drip: float | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if drip is not None:
            self.drip(body, drip)
            return
        self.wfile.write(body[:cut_after])
        if cut_after is not None:
            self.close_connection = True

    def drip(self, body: bytes, pause: float) -> None:
        """One byte after the other, until the client has had enough."""
        self.close_connection = True
        try:
            with self.hub.dripping():
                for place in range(len(body)):
                    self.wfile.write(body[place : place + 1])
                    if self.hub.stopped.wait(pause):
                        return
        except OSError:
            return
