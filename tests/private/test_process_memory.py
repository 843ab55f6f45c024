"""The memory of a process: what is new in it is counted once, as its own or as a file's."""

from __future__ import annotations

import mmap

import pytest

from langchain_gemma_jax.private import process_memory
from langchain_gemma_jax.private.process_memory import ProcessMemory

SIZE = 64 << 20

pytestmark = pytest.mark.skipif(not ProcessMemory.now().resident, reason="this system does not say")


def test_memory_of_its_own_and_pages_of_files_are_told_apart(tmp_path):
    before = ProcessMemory.now(share=True)
    own = bytearray(b"1") * SIZE
    with_own = ProcessMemory.now(share=True)
    for grown in (
        with_own.resident - before.resident,
        with_own.private - before.private,
        with_own.share - before.share,
    ):
        assert 0.9 * SIZE < grown < 1.5 * SIZE
    (tmp_path / "file").write_bytes(own)
    with (tmp_path / "file").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[at] for at in range(0, SIZE, mmap.PAGESIZE)) == SIZE // mmap.PAGESIZE * ord("1")
        with_file = ProcessMemory.now(share=True)
    assert with_file.resident - with_own.resident > 0.9 * SIZE
    assert with_file.private - with_own.private < 0.5 * SIZE
    assert ProcessMemory.now().share == 0, "that takes long, and was not asked for"


@pytest.mark.parametrize("content", [None, "", "12", "a b c", "Rss: 3 kB"])
def test_where_the_system_does_not_say_it_is_zero(tmp_path, monkeypatch, content):
    for name in ("_STATM", "_ROLLUP"):
        monkeypatch.setattr(process_memory, name, tmp_path / "there")
    if content is not None:
        (tmp_path / "there").write_text(content)
    assert ProcessMemory.now(share=True) == ProcessMemory()
