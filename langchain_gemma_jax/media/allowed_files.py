"""Files of this machine, from folders that are allowed and from nowhere else."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from langchain_gemma_jax.errors import MediaAccessError, UnreadableMediaError
from langchain_gemma_jax.media.block_forms import check_bytes


class AllowedFile:
    """A file that is open, and lies in an allowed folder after every link on its way was followed."""

    def __init__(self, path: str, folders: Sequence[str], at: str) -> None:
        self._at = at
        self._descriptor = _opened(path, folders, at)
        found = os.fstat(self._descriptor)
        self.size = found.st_size
        told = repr((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
        self.digest = hashlib.sha256(told.encode()).digest()
        """A digest of which file it is and when it was last changed."""

    def read(self, most: int) -> bytes:
        """Return what is in the file.

        Raises:
            MediaLimitError: that is too much.
        """
        check_bytes(self.size, most, self._at)
        with open(self._descriptor, "rb", closefd=False) as file:
            found = file.read(most + 1)
        check_bytes(len(found), most, self._at)
        return found

    def close(self) -> None:
        os.close(self._descriptor)


def allowed_file(path: str, folders: Sequence[str], at: str) -> closing[AllowedFile]:
    """Return a file to read, which is closed at the end of a ``with``.

    Raises:
        MediaAccessError: it is in no folder that is allowed; UnreadableMediaError: there is no such file.
    """
    return closing(AllowedFile(path, folders, at))


def _opened(path: str, folders: Sequence[str], at: str) -> int:
    if not folders:
        raise MediaAccessError(
            at, "paths of files are off. Name the folders that may be read: ChatGemmaJax(media_folders=[...]), or give "
            "the bytes",
        )  # fmt: skip
    if "\0" in path or not path:
        raise UnreadableMediaError(at, f"expected the path of a file, found {path[:60]!r}")
    # Links are followed here, once; below, none is followed any more, so nobody can put one in between.
    try:
        real, roots = Path(os.path.realpath(path)), [Path(os.path.realpath(folder)) for folder in folders]
    except OSError as error:  # of a folder that goes while it is looked at
        raise UnreadableMediaError(at, f"the file {path[:200]!r} cannot be read: {error.strerror}") from error
    for root in roots:
        if real.is_relative_to(root) and real != root:
            return _walked(root, real.relative_to(root).parts, path, at)
    raise MediaAccessError(
        at, f"the file {path[:200]!r} is in none of the folders that may be read: {', '.join(map(repr, folders))}. "
        "Name its folder in media_folders, or give the bytes",
    )  # fmt: skip


def _walked(root: Path, parts: Sequence[str], path: str, at: str) -> int:
    inside = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    *folders, name = parts
    try:
        with ExitStack() as opened:
            here = os.open(root, inside | os.O_DIRECTORY)
            opened.callback(os.close, here)
            for folder in folders:
                here = os.open(folder, inside | os.O_DIRECTORY, dir_fd=here)
                opened.callback(os.close, here)
            found = os.open(name, inside | os.O_NONBLOCK, dir_fd=here)  # a pipe's other end may never come
    except OSError as error:
        raise UnreadableMediaError(at, f"the file {path[:200]!r} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise UnreadableMediaError(at, f"{path[:200]!r} is no file")
    return found
