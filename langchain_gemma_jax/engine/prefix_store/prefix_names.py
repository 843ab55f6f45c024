"""The names of prefixes: digests of the model, the scope and every token, so that only equal ones match."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator

FORMAT = "prefixes 3"  # to be changed when the meaning of a file's content changes
_DIGEST = 32


def family_name(model: str, programs: str) -> str:
    """Return the name of a model's family of prefixes.

    Args:
        model: the digest of its files.
        programs: a digest of everything its programs depend on: dtypes, storage, kernels, releases, the machine.
    """
    return hashlib.sha256(f"{FORMAT}\0{model}\0{programs}".encode()).hexdigest()


class PrefixNames:
    """The names of one model's prefixes."""

    def __init__(self, family: str, secret: bytes = b"") -> None:
        """``secret``: a key that is needed to compute these names."""
        self.family, self._secret = family, secret[: hashlib.blake2b.MAX_KEY_SIZE]
        own = hashlib.blake2b(family.encode(), key=self._secret, digest_size=8).hexdigest() if secret else family[:16]
        self.family_part = f"{own}-"
        """The beginning of these prefixes' file names. Another key gives another one."""

    def digests(self, scope: str, keys: array[int], lengths: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield each length with the name of that number of first keys. Lengths ascend, up to the number of keys."""
        scope_bytes = scope.encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(key=self._secret, digest_size=_DIGEST)
        found.update(f"{self.family}\0{len(scope_bytes)}\0".encode() + scope_bytes)
        at = 0
        with memoryview(keys) as held:
            for length in lengths:
                found.update(held[at:length])
                at = length
                yield length, found.copy().digest()

    def digest(self, scope: str, keys: array[int], length: int) -> bytes:
        """Return the name of the first ``length`` keys."""
        ((_, found),) = self.digests(scope, keys, (length,))
        return found

    def file(self, digest: bytes) -> str:
        """Return the file name of the prefix whose longest mark has this digest."""
        return f"{self.family_part}{digest.hex()[:40]}{PREFIX}"

    def answers_file(self, scope: str) -> str:
        """Return the file name of a scope's past answers."""
        digest = self.digest(scope, array("q"), 0)
        return f"answers-{digest.hex()[:40]}{PREFIX}"


PREFIX = ".prefix"
