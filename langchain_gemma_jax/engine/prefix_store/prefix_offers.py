"""The prefixes that other replicas may ask this one for: sealed, as they lie on the disk."""

from __future__ import annotations

import hmac
import re
from typing import Final

from langchain_gemma_jax.engine.prefix_store.peer_http import PART
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_peers import LARGEST_LIST

_PART: Final = re.compile(r"[0-9a-f]{16}-")  # the beginning of the names of one model's prefixes, with one key
_NAME: Final = re.compile(r"[0-9a-f]{16}-[0-9a-f]{40}\.prefix")


class PrefixOffers:
    """The prefixes of this process's folder, for those who prove that they have its key."""

    def __init__(self, folder: PrefixFolder, token: str, me: str) -> None:
        self._folder, self._token, self.me = folder, token, me

    def knows(self, token: str) -> bool:
        """Return True if a caller has the key. The time that this takes says nothing of it."""
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token.encode())

    def tag(self) -> str:
        """Return a tag that is another one when prefixes came or went."""
        return f'"{self.me}-{self._folder.changed_at():x}"'

    def headers(self, part: str) -> bytes | None:
        """Return the headers of the files whose names begin with ``part``, the latest first. None: no such part."""
        if not _PART.fullmatch(part):
            return None
        found = bytearray()
        for name in sorted((each for each in self._folder.names() if each.startswith(part)), key=self._age):
            head = self._folder.raw_header(name)
            if head is not None and len(found) + len(head) <= LARGEST_LIST:
                found += head
        return bytes(found)

    def part(self, name: str, first: int, end: int) -> bytes | None:
        """Return some bytes of a file. None: there is no such file, or it has no such bytes."""
        if not _NAME.fullmatch(name) or not 0 <= first < end <= first + PART:
            return None
        found = self._folder.raw(name, first, end - first)
        if found is not None:
            self._folder.files.count(prefix_bytes_offered=len(found))
        return found

    def _age(self, name: str) -> float:
        facts = self._folder.files.facts(name)
        return 0.0 if facts is None else -max(facts.st_mtime, facts.st_atime)
