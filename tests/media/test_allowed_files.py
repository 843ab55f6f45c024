"""Files from allowed folders, and every way out of them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import MediaAccessError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.allowed_files import allowed_file

AT = "messages[0].content[0]"


def read(path: object, *folders: object, most: int = 1000) -> bytes:
    with allowed_file(str(path), tuple(map(str, folders)), AT) as file:
        return file.read(most)


@pytest.fixture
def place(tmp_path) -> Path:
    for name in ("allowed/below", "secret", "allowed-too"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.png").write_bytes(name.encode())
    return tmp_path


def test_files_below_allowed_folders(place, monkeypatch):
    assert read(place / "allowed/below/a.png", place / "allowed") == b"allowed/below"
    assert read(place / "secret/a.png", place / "allowed", place / "secret") == b"secret"
    (place / "allowed/inside").symlink_to(place / "allowed/below")
    assert read(place / "allowed/inside/a.png", place / "allowed") == b"allowed/below", "a link that stays inside"
    (place / "way").symlink_to(place / "allowed")
    assert read(place / "allowed/below/a.png", place / "way") == b"allowed/below", "the folder may be a link itself"
    monkeypatch.chdir(place / "allowed")
    assert read("below/a.png", ".") == b"allowed/below"


def test_no_way_out(place):
    (place / "allowed/link.png").symlink_to(place / "secret/a.png")
    (place / "allowed/folder").symlink_to(place / "secret")
    for path in (
        "secret/a.png",
        "allowed/../secret/a.png",
        "allowed/link.png",
        "allowed/folder/a.png",
        "allowed/below/../../secret/a.png",
        "allowed-too/a.png",
        "allowed",
    ):
        with pytest.raises(MediaAccessError, match="none of the folders"):
            read(place / path, place / "allowed")
    with pytest.raises(MediaAccessError, match=r"off.*media_folders") as found:
        read(place / "allowed/below/a.png")
    assert found.value.at == AT


def test_what_is_no_file(place):
    os.mkfifo(place / "allowed/pipe")
    for path, said in (("gone.png", "No such file"), ("below", "is no file"), ("pipe", "is no file")):
        with pytest.raises(UnreadableMediaError, match=said):
            read(place / "allowed" / path, place / "allowed")
    for path in ("", "a\0b"):
        with pytest.raises(UnreadableMediaError, match="expected the path"):
            read(path, place)
    with pytest.raises(UnreadableMediaError, match="cannot be read"):
        read("/dev/mem/x", "/dev")


def test_too_large_a_file_is_not_read(place):
    with pytest.raises(MediaLimitError, match="more than the 5 ") as found:
        read(place / "secret/a.png", place, most=5)
    assert found.value.limit == "bytes"
    assert read(place / "secret/a.png", place, most=6) == b"secret"


def test_a_file_that_changed_has_another_digest(place):
    path, folders = str(place / "secret/a.png"), (str(place),)
    with allowed_file(path, folders, AT) as one, allowed_file(path, folders, AT) as same:
        assert one.digest == same.digest
    Path(path).write_bytes(b"longer than before")
    with allowed_file(path, folders, AT) as other:
        assert other.digest != one.digest


@pytest.mark.long
def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(place):
    """A folder is swapped for a link all the time: what is read is inside, or nothing is."""
    inside, swapped = place / "allowed/below", place / "allowed/moved"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            inside.rename(swapped)
            inside.symlink_to(place / "secret")
            inside.unlink()
            swapped.rename(inside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    found = set()
    try:
        for _ in range(3000):
            try:
                found.add(read(inside / "a.png", place / "allowed"))
            except (MediaAccessError, UnreadableMediaError):
                found.add(b"")
    finally:
        stop.set()
        swapping.join()
    assert found <= {b"", b"allowed/below"}
    assert read(inside / "a.png", place / "allowed") == b"allowed/below"
