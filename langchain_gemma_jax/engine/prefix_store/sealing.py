"""Two ways to prove the blocks of a prefix file: by digests, or by encrypting them with a key of the user's."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any, Protocol

from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.private.folder import DamagedError

SALT_BYTES = 16


class Sealing(Protocol):
    """How a block is proven to be the one that was written."""

    secret: bytes
    """What the names of prefixes are made with, so that nobody else can tell what they name. Empty: anybody could."""
    growth: int
    """By how many bytes a block is longer on the disk."""

    def salt(self) -> bytes:
        """Return what makes a file's key its own; nothing where there are no keys."""
        ...

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> bytes | memoryview:
        """Return a block as it is written. ``header`` is the digest of the header that it belongs to."""
        ...

    def proof(self, block: memoryview) -> bytes:
        """Return what the header has to say of a block; nothing where the block proves itself."""
        ...

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:
        """Return a block as it was.

        Raises:
            DamagedError: a bit is not as it was written, or it is another block.
        """
        ...


class Digests:
    """Blocks as they are, each with its SHA-256 in the header. Finds what disks and killed processes do."""

    secret, growth = b"", 0

    def salt(self) -> bytes:
        return b""

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> memoryview:  # noqa: ARG002
        return block

    def proof(self, block: memoryview) -> bytes:
        return hashlib.sha256(block).digest()

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:
        if salt or hashlib.sha256(stored).digest() != proof:
            raise DamagedError(f"the digest of block {index} does not match")
        del header
        return stored


class Encrypted:
    """Blocks encrypted with AES-256-GCM, by a key for each file that follows from the user's and the file's salt.

    A block's nonce is its number in the file, which no other block under that key has.
    """

    growth = 16  # the tag

    def __init__(self, key: bytes) -> None:
        """``key`` is the user's, of any length that cannot be guessed.

        Raises:
            InstallationError: the package that encrypts is missing.
        """
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise InstallationError(
                "prefix_key_file: expected the package cryptography, which encrypts what is kept on the disk, and "
                "found none. Do: pip install 'langchain-gemma-jax[encryption]', or leave out prefix_key_file to keep "
                "prefixes unencrypted."
            ) from error
        self._cipher: Any = AESGCM
        self._refusal: type[Exception] = InvalidTag
        self._key = key
        self.secret = _derived(key, b"names")

    def salt(self) -> bytes:
        return os.urandom(SALT_BYTES)

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> bytes:
        sealed: bytes = self._of(salt).encrypt(_nonce(index), block, header)
        return sealed

    def proof(self, block: memoryview) -> bytes:  # noqa: ARG002  its tag does that
        return b""

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:  # noqa: ARG002
        try:
            return memoryview(self._of(salt).decrypt(_nonce(index), stored, header))
        except self._refusal as error:
            raise DamagedError(f"block {index} was not encrypted with this key, or not like this") from error

    def _of(self, salt: bytes) -> Any:
        return self._cipher(_derived(self._key, b"file" + salt))


def _derived(key: bytes, purpose: bytes) -> bytes:
    """One key for each purpose, from which nobody finds another, nor the first."""
    return hmac.new(key, b"gemma-jax prefixes, 1: " + purpose, hashlib.sha256).digest()


def _nonce(index: int) -> bytes:
    return index.to_bytes(12, "big")
