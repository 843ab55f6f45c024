"""Keys: from a file that nobody else can read, or an error that says what to do."""

from __future__ import annotations

import os

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.key_file import read_key


def test_a_key_is_what_its_file_holds(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(b" 0123456789abcdef0123456789abcdef\n")
    file.chmod(0o600)
    assert read_key(file, "key_file") == b"0123456789abcdef0123456789abcdef"


def test_a_file_that_is_no_key_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "key"
    with pytest.raises(InputError, match=r"cannot be read: No such file.*Make one: .*/dev/urandom"):
        read_key(file, "key_file")
    file.write_bytes(b"short\n")
    file.chmod(0o600)
    with pytest.raises(InputError, match="expected 32 bytes at least, found 5"):
        read_key(file, "key_file")
    file.write_bytes(b"x" * 40)
    file.chmod(0o640)
    with pytest.raises(InputError, match=r"others can read .*0640.*chmod 600"):
        read_key(file, "key_file")
    with pytest.raises(InputError, match="cannot be read"):
        read_key(tmp_path, "key_file")
    file.write_bytes(b"x" * 70_000)
    with pytest.raises(InputError, match="up to 65536 bytes"):
        read_key(file, "key_file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root's")
def test_a_secret_of_a_pod_is_read_by_its_group_alone(tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_bytes(b"x" * 40)
    file.chmod(0o440)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    assert read_key(file, "key_file") == b"x" * 40
    file.chmod(0o444)
    with pytest.raises(InputError, match="others can read"):
        read_key(file, "key_file")
