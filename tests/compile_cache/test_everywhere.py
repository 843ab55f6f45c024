"""All stores of a user, and no other folder beside them."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.compile_cache import everywhere
from langchain_gemma_jax.compile_cache.everywhere import nothing_kept, stores
from langchain_gemma_jax.compile_cache.store import Store

KINDS = ["jaxlib-9.9.9-abc/cpu", "jaxlib-9.9.9-abc/nvidia-h200"]


@pytest.fixture
def root(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path / "programs"


def test_stores_of_every_release_and_device_are_found_and_nothing_else(root):
    assert stores(root) == []
    for kind in KINDS:
        Store(root / kind, root=root).put("a", b"1", label="a", seconds=1.0)
    (root / "notes" / "cpu").mkdir(parents=True)
    (root / "jaxlib-9.9.9-abc" / "file").write_text("")
    assert [str(store.folder.relative_to(root)) for store in stores(root)] == KINDS


def test_nothing_is_kept_before_a_program_is_nor_where_there_is_no_cache(root, monkeypatch):
    monkeypatch.setattr(everywhere, "current_root", lambda: root)
    assert nothing_kept()
    Store(root / KINDS[0], root=root).put("a", b"1", label="a", seconds=1.0)
    assert not nothing_kept()
    monkeypatch.setattr(everywhere, "current_root", lambda: None)
    assert nothing_kept()
