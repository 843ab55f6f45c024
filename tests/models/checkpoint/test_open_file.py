"""A file is read where it is asked for, by any number of threads, and never beyond its end."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile

CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=[True, False])
def file(request, tmp_path, monkeypatch):
    """With ``preadv`` and, as on Windows, without."""
    if not request.param:
        monkeypatch.delattr(os, "preadv", raising=False)
    (tmp_path / "real").write_bytes(CONTENT)
    file = OpenFile(tmp_path / "real", tmp_path / "shown")
    yield file
    file.close()
    file.close()


def test_threads_read_what_is_there(file):
    def read(begin):
        file.fill(into := np.zeros((7, 9), "<u2"), begin)
        return into.tobytes()

    begins = range(0, len(CONTENT) - 126, 123)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, begins)) == [CONTENT[begin : begin + 126] for begin in begins]
    assert (file.size, file.head(len(CONTENT) - 3, 9)) == (len(CONTENT), CONTENT[-3:])


def test_a_file_that_lost_its_end_and_a_disk_that_breaks_are_named(file, tmp_path, monkeypatch):
    os.truncate(tmp_path / "real", 100)
    with pytest.raises(CorruptCheckpointError, match=r"shown: expected 110 bytes.*found 100 bytes"):
        file.fill(np.zeros(20, np.uint8), 90)

    def breaks(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(file, "_read_some", breaks)
    with pytest.raises(CheckpointError, match=r"read to its end.*Input/output error"):
        file.fill(np.zeros(1, np.uint8), 0)
