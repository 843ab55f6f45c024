from __future__ import annotations

import os

import pytest

from langchain_gemma_jax.errors import CheckpointNotFoundError, UnsafeCheckpointError
from langchain_gemma_jax.models.configuration.links import real_file

HASH = "ab" * 32


@pytest.fixture
def cache(tmp_path):
    """A Hub cache with one model, and a secret beside the cache."""
    (tmp_path / "secret").write_text("secret")
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    for blobs in (snapshot.parents[1] / "blobs", tmp_path / "hub" / "blobs" / HASH[:2]):
        blobs.mkdir(parents=True)
        (blobs / HASH).write_text("content")
    return snapshot


def test_a_plain_file(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert real_file(tmp_path, "config.json") == tmp_path / "config.json"


def test_a_link_inside_the_folder(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").symlink_to("a")
    assert real_file(tmp_path, "b") == tmp_path / "a"


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("a")
    (tmp_path / "link").symlink_to("real")
    assert real_file(tmp_path / "link", "a") == tmp_path / "real" / "a"


@pytest.mark.parametrize("store", ["../../blobs", "../../../blobs/ab"])
def test_the_hubs_own_cache(cache, store):
    (cache / "config.json").symlink_to(f"{store}/{HASH}")
    assert real_file(cache, "config.json").read_text() == "content"


def test_the_hubs_shared_store_through_the_models_own(cache):
    etag = cache.parents[1] / "blobs" / "etag"
    etag.symlink_to(f"../../blobs/ab/{HASH}")
    (cache / "config.json").symlink_to("../../blobs/etag")
    assert real_file(cache, "config.json").read_text() == "content"


@pytest.mark.parametrize(
    "target",
    [
        "../../../../secret",  # beside the cache
        "../other/config.json",  # another revision
        "../../refs/main",
        "../../../models--org--other/blobs/x",  # another model
        "../../../blobs/no/notes.txt",  # in the shared store, but no content
        "../../../blobs/secret",
    ],
)
def test_a_snapshot_may_link_to_contents_only(cache, target):
    (cache / "config.json").symlink_to(target)
    resolved = cache / target
    resolved.parent.mkdir(parents=True, exist_ok=True)
    resolved.write_text("x")
    with pytest.raises(UnsafeCheckpointError, match="inside the model's folder, found a link to"):
        real_file(cache, "config.json")


def test_blobs_that_are_a_link_themselves(cache):
    blobs = cache.parents[1] / "blobs"
    (blobs / HASH).unlink()
    blobs.rmdir()
    blobs.symlink_to("../..")
    (cache / "config.json").symlink_to("../../blobs/secret")
    with pytest.raises(UnsafeCheckpointError):
        real_file(cache, "config.json")


@pytest.mark.parametrize("target", ["../secret", "/etc/hostname", "inner/../../secret", "../model-2/config.json"])
def test_a_link_out_of_a_plain_folder(tmp_path, target):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "model" / "inner").mkdir(parents=True)
    (tmp_path / "model" / "config.json").symlink_to(target)
    with pytest.raises(UnsafeCheckpointError) as caught:
        real_file(tmp_path / "model", "config.json")
    assert caught.value.path == str(tmp_path / "model" / "config.json")


@pytest.mark.parametrize("place", ["models/snapshots/model", "models--org--name/other/model"])
def test_blobs_beside_a_folder_that_is_no_snapshot(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder.parents[1] / "blobs").mkdir()
    (folder.parents[1] / "blobs" / HASH).write_text("x")
    (folder / "config.json").symlink_to(f"../../blobs/{HASH}")
    with pytest.raises(UnsafeCheckpointError):
        real_file(folder, "config.json")


def test_a_link_through_a_linked_folder(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("a")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "inner").symlink_to("../outside")
    (tmp_path / "model" / "a").symlink_to("inner/a")
    with pytest.raises(UnsafeCheckpointError):
        real_file(tmp_path / "model", "a")


@pytest.mark.parametrize("kind", ["nothing", "a folder", "which is not there", "not a regular file", "a loop"])
def test_what_is_not_a_file_is_not_found(tmp_path, kind):
    path = tmp_path / "config.json"
    if kind == "a folder":
        path.mkdir()
    elif kind == "which is not there":
        path.symlink_to("gone")
    elif kind == "not a regular file":
        os.mkfifo(path)  # opening it would wait for ever
    elif kind == "a loop":
        path.symlink_to("config.json")
    found = "which is not there" if kind == "a loop" else kind
    with pytest.raises(CheckpointNotFoundError, match=found):
        real_file(tmp_path, "config.json")
