"""Prefixes that other replicas offer: which there are, and their blocks. Nothing here raises because of a peer.

What a peer sends is proven with the deployment's key, as what is in a shared folder is. A peer that does not answer, or
not in time, is left alone for a while, and twice as long each time.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from langchain_gemma_jax.compile_cache.warning import warn_once
from langchain_gemma_jax.engine.prefix_store.peer_http import (
    PART,
    KeyRefusedError,
    PeerAddress,
    PeerError,
    addresses_of,
    ask,
)
from langchain_gemma_jax.engine.prefix_store.prefix_file import header_bytes, places, read_header
from langchain_gemma_jax.engine.prefix_store.prefix_folder import LOOK_SECONDS, PrefixStoreWarning
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames
from langchain_gemma_jax.engine.prefix_store.sealing import Sealing
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import PrefixArrays, StoredPrefix
from langchain_gemma_jax.private.folder import DamagedError

LIST_SECONDS: Final = 3.0  # in which a peer has to say what it has; requests do not wait for the slowest
LEAST_SECONDS: Final = 1.0  # for a prefix, however soon its tokens would be read again
LONGEST_REST: Final = 60.0  # seconds without questions to a peer that fails again and again
AT_ONCE: Final = 8  # peers that are asked at a time, out of all that are due
LARGEST_LIST: Final = 2**23  # bytes

_warn = partial(warn_once, topic="prefixes of peers", category=PrefixStoreWarning)


@dataclass(frozen=True)
class OfferedPrefix:
    """A prefix that a peer has."""

    peer: Peer
    stored: StoredPrefix


@dataclass(eq=False)
class Peer:
    """A replica, and how it has answered."""

    address: PeerAddress
    failed: int = 0  # times, one after the other
    due_at: float = 0.0  # by ``time.monotonic``
    itself: bool = False  # it is this process: a service's name leads here too

    def answered(self) -> None:
        self.failed = 0

    def rest(self) -> None:
        """Leave it alone for a while."""
        self.failed += 1
        self.due_at = time.monotonic() + min(LONGEST_REST, 2.0 ** min(self.failed, 10) / 2)


class Peers:
    """The replicas of a deployment, for all models of an engine. Any thread may use it."""

    def __init__(self, urls: Sequence[str], sealing: Sealing, me: str) -> None:
        """``me``: begins the tags of this process's own offer, so that it does not ask itself."""
        self._urls, self.sealing, self.me = tuple(urls), sealing, me
        self._peers: dict[PeerAddress, Peer] = {}
        self._lock = threading.Lock()
        self._resolved_at: float | None = None

    def due(self) -> list[Peer]:
        """Return some peers that may be asked now."""
        now = time.monotonic()
        if self._resolved_at is None or now - self._resolved_at > LOOK_SECONDS:
            self._resolve()
            self._resolved_at = now
        with self._lock:
            found = [peer for peer in self._peers.values() if not peer.itself and peer.due_at <= now]
        return found if len(found) <= AT_ONCE else random.sample(found, AT_ONCE)

    def _resolve(self) -> None:
        found: list[PeerAddress] = []
        for url in self._urls:
            try:
                found += addresses_of(url)
            except (OSError, UnicodeError) as error:
                _warn(f"prefix_peers: {url} cannot be looked up ({error}); prompts are read without it.")
        with self._lock:
            self._peers = {each: self._peers.get(each) or Peer(each) for each in found}


@dataclass
class _Listed:
    """The offer of one peer for one model."""

    tag: str = ""
    marks: Mapping[bytes, OfferedPrefix] = field(default_factory=dict)


class OfferedPrefixes:
    """The prefixes of one model that peers offer. Any thread may use it."""

    def __init__(self, names: PrefixNames, peers: Peers) -> None:
        self._names, self._peers, self._sealing = names, peers, peers.sealing
        self._listed: dict[Peer, _Listed] = {}
        self._refused: frozenset[bytes] = frozenset()  # digests of the headers of what was wrong
        self._looked_at: float | None = None

    @property
    def fresh(self) -> bool:
        """True if the peers were asked a moment ago."""
        return self._looked_at is not None and time.monotonic() - self._looked_at < LOOK_SECONDS

    def refresh(self) -> None:
        """Ask the peers what they have, all at once. What comes can be found at once, before the slowest is done."""
        if self.fresh:
            return
        self._looked_at = time.monotonic()
        asked = [threading.Thread(target=self._list, args=(peer,), daemon=True) for peer in self._peers.due()]
        until = time.monotonic() + LIST_SECONDS
        for thread in asked:
            thread.start()
        for thread in asked:
            thread.join(max(0.0, until - time.monotonic()))

    def find(self, scope: str, keys: array[int], more_than: int) -> OfferedPrefix | None:
        """Return the longest offered prefix that has more than ``more_than`` keys, and not all."""
        offers = [listed.marks for listed in list(self._listed.values()) if listed.marks]
        lengths = sorted({each.stored.mark.length for marks in offers for each in marks.values()})
        best = None
        for _, digest in self._names.digests(scope, keys, [n for n in lengths if more_than < n < len(keys)]):
            found = next((marks[digest] for marks in offers if digest in marks), None)
            best = found if found is not None and found.stored.header.digest not in self._refused else best
        return best

    def read(self, offered: OfferedPrefix, seconds: float) -> PrefixArrays | None:
        """Return the arrays of a prefix, verified. None: the peer is gone, or late, or what it sent is wrong.

        ``seconds``: for which it may take, unless that is less than a second.
        """
        began, stored, header = time.perf_counter(), offered.stored, offered.stored.header
        until = time.monotonic() + max(LEAST_SECONDS, seconds)
        where = places(header, self._sealing)
        try:
            sealed = self._parts(offered, [where[index] for index in stored.blocks], until)
            blocks = [
                self._sealing.unseal(part, index, header.salt, header.digest, header.proofs[index])
                for part, index in zip(sealed, stored.blocks, strict=True)
            ]
            return stored.arrays(blocks, time.perf_counter() - began)
        except PeerError:
            offered.peer.rest()
            self._listed.pop(offered.peer, None)
        except DamagedError as error:
            self.refuse(offered)
            _warn(f"{offered.peer.address.shown} sent a prefix that is not what was written: {error}. It is not used.")
        return None

    def refuse(self, offered: OfferedPrefix) -> None:
        """Do not ask for this file again."""
        self._refused |= {offered.stored.header.digest}

    def _parts(self, offered: OfferedPrefix, where: Sequence[tuple[int, int]], until: float) -> Iterator[memoryview]:
        """Yield the bytes at some places ``(offset, size)`` of a file. Those that touch are asked for together."""
        for run in _runs(where):
            first, end = run[0][0], sum(run[-1])
            found = memoryview(self._bytes(offered, first, end, until))
            for at, size in run:
                yield found[at - first : at - first + size]

    def _bytes(self, offered: OfferedPrefix, first: int, end: int, until: float) -> bytearray:
        found = bytearray()
        while first + len(found) < end:
            span = first + len(found), min(end, first + len(found) + PART)
            left = until - time.monotonic()
            if left <= 0:
                raise PeerError("it takes longer than to read the tokens again")
            answer = ask(offered.peer.address, offered.stored.file, self._sealing.peer_token, left, span=span)
            if answer.body is None:
                raise PeerError("it answered without a body")
            found += answer.body
        return found

    def _list(self, peer: Peer) -> None:
        """Ask one peer what it has of this model."""
        before = self._listed.get(peer, _Listed())
        part, token = self._names.family_part, self._sealing.peer_token
        try:
            answer = ask(peer.address, part, token, LIST_SECONDS, known=before.tag, most=LARGEST_LIST)
        except PeerError as error:
            peer.rest()
            self._listed.pop(peer, None)
            if isinstance(error, KeyRefusedError):
                _warn(
                    f"prefix_peers: {peer.address.shown} has another prefix_key_file. Give all replicas of a "
                    "deployment the same key; prompts are read without that one."
                )
            return
        peer.answered()
        peer.itself = answer.tag.startswith(f'"{self._peers.me}-')
        if answer.body is not None and not peer.itself:
            self._listed[peer] = _Listed(answer.tag, self._marks(peer, answer.body))

    def _marks(self, peer: Peer, body: bytearray) -> dict[bytes, OfferedPrefix]:
        """Return what a list of headers offers. A header that cannot be proven ends it."""
        found: dict[bytes, OfferedPrefix] = {}
        rest = memoryview(body)
        while rest:
            try:
                size = header_bytes(rest)
                header = read_header(rest[:size], self._sealing)
            except DamagedError as error:
                _warn(
                    f"{peer.address.shown} offers prefixes that are not what was written: {error}. They are not used."
                )
                break
            rest = rest[size:]
            if header.family != self._names.family or not header.marks:
                continue
            file = self._names.file(max(header.marks, key=lambda mark: mark.length).digest)
            for mark in header.marks:
                found.setdefault(mark.digest, OfferedPrefix(peer, StoredPrefix(file, header, mark)))
        return found


def _runs(where: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return places ``(offset, size)`` in groups, each without a gap."""
    found: list[list[tuple[int, int]]] = []
    for place in where:
        if found and sum(found[-1][-1]) == place[0]:
            found[-1].append(place)
        else:
            found.append([place])
    return found
