"""A private file: read by its owner, and by whom root chose; refused when anybody else can read it."""

from __future__ import annotations

import os

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.private_file import read_private


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "secret"
    found.write_bytes(b"a secret\n")
    found.chmod(0o600)
    return found


def read(file, largest=100):
    return read_private(file, "--option", "a file with a secret", largest, "Make one.")


def test_what_its_owner_alone_can_read_is_read(file):
    assert read(file, 9) == b"a secret\n"


def test_what_is_missing_too_large_or_no_file_is_refused_with_what_to_do(file, tmp_path):
    with pytest.raises(InputError, match=r"--option: expected a file with a secret, found .*secret\. Make one\."):
        read(file, 8)
    for wrong in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match=r"--option: .* cannot be read: .*Make one\."):
            read(wrong)


def test_what_others_can_read_is_refused(file):
    for mode in (0o640, 0o604, 0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(InputError, match=rf"others can read .*{mode:04o}.*chmod 600"):
            read(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root's")
def test_a_secret_of_a_pod_is_read_by_the_group_that_root_chose(file, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    file.chmod(0o440)
    assert read(file) == b"a secret\n"
    file.chmod(0o444)
    with pytest.raises(InputError, match="others can read"):
        read(file)
