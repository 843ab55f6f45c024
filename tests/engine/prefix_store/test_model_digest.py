"""The digest of a model's files: of their bytes, made once, and never that of other bytes."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.prefix_store.model_digest import DIGESTS, model_digest
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.private.folder import open_folder


@pytest.fixture
def kept(tmp_path):
    return open_folder(tmp_path / "kept", tmp_path / "kept")


def model_in(folder, weights=b"weights"):
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "tokenizer.json").write_bytes(b"{}")
    return folder


def test_the_same_bytes_have_the_same_digest_wherever_they_are(tmp_path, kept):
    one, two = (Unchanged.now(model_in(tmp_path / name)) for name in ("one", "two"))
    other = Unchanged.now(model_in(tmp_path / "three", b"weighty"))
    file = tmp_path / "model.gguf"
    file.write_bytes(b"weights")
    single = Unchanged.now(file)
    found = [model_digest(files, kept) for files in (one, two, other, single)]
    assert found[0] == found[1]
    assert None not in found
    assert len(set(found)) == 3


def test_it_is_made_once(tmp_path, kept, monkeypatch):
    files = Unchanged.now(model_in(tmp_path / "one"))
    found = model_digest(files, kept)
    with monkeypatch.context() as patch:
        patch.setattr(Unchanged, "digest", lambda _: pytest.fail("it was made again"))
        assert model_digest(files, kept) == found
    for damage in (b"", b"nonsense", (kept.path / DIGESTS).read_bytes()[:-1]):
        (kept.path / DIGESTS).write_bytes(damage)
        assert model_digest(files, kept) == found
    assert model_digest(files, None) == found


def test_files_that_were_changed_since_have_none(tmp_path, kept):
    folder = model_in(tmp_path / "one")
    files = Unchanged.now(folder)
    first = model_digest(files, kept)
    (folder / "model.safetensors").write_bytes(b"WEIGHTS")
    assert model_digest(files, kept) is None, "though its digest is remembered"
    assert model_digest(Unchanged.now(folder), kept) not in {None, first}
    (folder / "model.safetensors").unlink()
    assert model_digest(files, kept) is None
