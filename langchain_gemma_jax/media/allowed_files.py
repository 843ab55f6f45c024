"""Files of this machine, read from allowed folders only."""

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
    """An open file in an allowed folder. Every symlink in its path was resolved before that was checked."""

    def __init__(self, path: str, folders: Sequence[str], at: str) -> None:
        self._at = at
        self._descriptor = _opened(path, folders, at)
        found = os.fstat(self._descriptor)
        self.size = found.st_size
        identity = repr((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
        self.digest = hashlib.sha256(identity.encode()).digest()
        """A digest of the file's identity, its size and the times of its last changes."""

    def read(self, most: int) -> bytes:
        """Return the file's bytes.

        Raises:
            MediaLimitError: there are more than ``most``.
        """
        check_bytes(self.size, most, self._at)
        with open(self._descriptor, "rb", closefd=False) as file:
            found = file.read(most + 1)
        check_bytes(len(found), most, self._at)
        return found

    def close(self) -> None:
        os.close(self._descriptor)


def allowed_file(path: str, folders: Sequence[str], at: str) -> closing[AllowedFile]:
    """Return a file to read, which a ``with`` block closes at its end.

    Raises:
        MediaAccessError: it is in none of the allowed folders; UnreadableMediaError: it does not exist, cannot be read,
            or is no regular file.
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
    # Symlinks are followed here, once. `_walked` follows none, so it refuses one that is put in its way meanwhile.
    try:
        real, roots = Path(os.path.realpath(path)), [Path(os.path.realpath(folder)) for folder in folders]
    except OSError as error:  # such as a folder that was deleted meanwhile
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
            found = os.open(name, inside | os.O_NONBLOCK, dir_fd=here)  # else a named pipe would wait for its other end
    except OSError as error:
        raise UnreadableMediaError(at, f"the file {path[:200]!r} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise UnreadableMediaError(at, f"{path[:200]!r} is no file")
    return found
