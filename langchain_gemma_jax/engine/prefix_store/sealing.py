"""Two ways to verify the blocks of a prefix file: by digests, or by encryption with the user's key."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Any, Protocol

from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.private.folder import DamagedError

SALT_BYTES = 16


class Sealing(Protocol):
    """A way to verify that a block is the one that was written."""

    secret: bytes
    """The key for the names of prefixes, so that others cannot test what they name. Empty: there is no key."""
    peer_token: str
    """The word by which replicas with the same key know each other; empty: there is no key."""
    growth: int
    """The number of bytes by which a block is longer on disk."""

    def salt(self) -> bytes:
        """Return a salt for a file's key; empty if there are no keys."""
        ...

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> bytes | memoryview:
        """Return a block in the form that is written. ``header`` is the digest of its file's header."""
        ...

    def proof(self, block: memoryview) -> bytes:
        """Return the digest of a block for the header; empty if the block can be verified by itself."""
        ...

    def head(self, header: bytes | memoryview) -> bytes:
        """Return the 32 bytes that prove a header. With a key, only its holders can make them."""
        ...

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:
        """Return the original block, verified.

        Raises:
            DamagedError: the bytes differ from what was written, or it is another block.
        """
        ...


class Digests:
    """Plain blocks, each with its SHA-256 in the header. This detects faults of disks and killed processes."""

    secret, peer_token, growth = b"", "", 0

    def salt(self) -> bytes:
        return b""

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> memoryview:  # noqa: ARG002
        return block

    def proof(self, block: memoryview) -> bytes:
        return hashlib.sha256(block).digest()

    def head(self, header: bytes | memoryview) -> bytes:
        return hashlib.sha256(header).digest()

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:
        if salt or hashlib.sha256(stored).digest() != proof:
            raise DamagedError(f"the digest of block {index} does not match")
        del header
        return stored


class Encrypted:
    """Blocks encrypted with AES-256-GCM. Each file has a key, derived from the user's key and the file's salt.

    A block's nonce is its number in the file, which is unique for that key.
    """

    growth = 16  # the tag

    def __init__(self, key: bytes) -> None:
        """``key``: the user's key, of any length that cannot be guessed.

        Raises:
            InstallationError: the package for encryption is missing.
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
        self._heads = _derived(key, b"heads")
        self.peer_token = _derived(key, b"peers").hex()

    def salt(self) -> bytes:
        return os.urandom(SALT_BYTES)

    def seal(self, block: memoryview, index: int, salt: bytes, header: bytes) -> bytes:
        sealed: bytes = self._of(salt).encrypt(_nonce(index), block, header)
        return sealed

    def proof(self, block: memoryview) -> bytes:  # noqa: ARG002  its tag does that
        return b""

    def head(self, header: bytes | memoryview) -> bytes:
        return hmac.new(self._heads, header, hashlib.sha256).digest()

    def unseal(self, stored: memoryview, index: int, salt: bytes, header: bytes, proof: bytes) -> memoryview:  # noqa: ARG002
        try:
            return memoryview(self._of(salt).decrypt(_nonce(index), stored, header))
        except self._refusal as error:
            raise DamagedError(f"block {index} was not encrypted with this key, or not like this") from error

    def _of(self, salt: bytes) -> Any:
        return self._cipher(_derived(self._key, b"file" + salt))


def _derived(key: bytes, purpose: bytes) -> bytes:
    """Derive a key for a purpose. It does not reveal the first key or those for other purposes."""
    return hmac.new(key, b"gemma-jax prefixes, 1: " + purpose, hashlib.sha256).digest()


def _nonce(index: int) -> bytes:
    return index.to_bytes(12, "big")
