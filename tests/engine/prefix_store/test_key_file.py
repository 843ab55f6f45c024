"""The key for prefixes: from a file that nobody else can read, or an error that says what to do."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.prefix_store.key_file import read_key
from langchain_gemma_jax.errors import InputError


def test_a_key_is_what_its_file_holds(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(b" 0123456789abcdef0123456789abcdef\n")
    file.chmod(0o600)
    assert read_key(file) == b"0123456789abcdef0123456789abcdef"


def test_a_file_that_is_no_key_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "key"
    with pytest.raises(InputError, match=r"cannot be read: No such file.*Make one: .*/dev/urandom"):
        read_key(file)
    file.write_bytes(b"short\n")
    file.chmod(0o600)
    with pytest.raises(InputError, match="expected 32 bytes at least, found 5"):
        read_key(file)
    file.write_bytes(b"x" * 40)
    file.chmod(0o640)
    with pytest.raises(InputError, match=r"others can read .*0640.*chmod 600"):
        read_key(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_key(tmp_path)
    file.write_bytes(b"x" * 70_000)
    with pytest.raises(InputError, match="up to 65536 bytes"):
        read_key(file)
