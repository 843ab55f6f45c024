"""Documents as pictures of their pages, drawn by PDFium in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import IO

import numpy as np

from langchain_gemma_jax.errors import InstallationError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media import page_drawing
from langchain_gemma_jax.media.budget import Lease, drawing, leased
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.stopping import current

LONGER_SIDE = 1_536  # pixels of a page: text of the usual size can be read
_PAGE_BYTES = LONGER_SIDE * LONGER_SIDE * 3
_PATIENCE = 4  # seconds of a clock for each CPU second, as other programs use the processors too


def looks_like_document(data: bytes) -> bool:
    """Return True for bytes that have a PDF's signature among the first 1,024."""
    return b"%PDF-" in data[:1024]


def read_document(
    data: bytes, most_pages: int, at: str, *, cpu_s: int = 30, lease: Lease | None = None
) -> tuple[Picture, ...]:
    """Return the pages of a PDF.

    Args:
        data: the PDF.
        most_pages: the most pages that it may have.
        at: its place in the conversation, for errors.
        cpu_s: the most CPU seconds for drawing it.
        lease: the lease for its memory, which stays open.

    Raises:
        UnreadableMediaError: it is no PDF, is broken, or has a password; MediaLimitError: it has too many pages, or
        takes too long; InstallationError: pypdfium2 or Pillow is not installed, or no program of Python is found;
        StoppedError: the result is not needed any more.
    """
    missing = [name for name, module in (("pypdfium2", "pypdfium2"), ("Pillow", "PIL")) if find_spec(module) is None]
    if missing:
        raise InstallationError(
            f"{at}: the pages of a PDF are drawn by pypdfium2 and resized by Pillow; {' and '.join(missing)} cannot be "
            "imported here: pip install 'langchain-gemma-jax[pdf]'. Or give its pages as images, or their text."
        )
    python = _python(at)
    with drawing().taken(1), leased(lease) as room:
        return _Drawing(python, most_pages, cpu_s, at).pages_of(data, room)


def _python(at: str) -> str:
    """Return the path of a Python interpreter. Where Python is embedded in another program, the user has to set it."""
    found = os.fsdecode(get_executable() or "")
    chosen = found != (sys.executable or "")  # by multiprocessing.set_executable
    if chosen or (Path(found).name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)):
        return found
    raise InstallationError(
        f"{at}: the pages of a PDF are drawn in a process of their own, and Python is part of another program here "
        f"({found[:200] or 'which has no name'}). Say multiprocessing.set_executable('/path/to/python'), or give the "
        "pages as images."
    )


def _program() -> str:
    """Return the source that the process runs, read as a resource: the package may be in an archive."""
    return resources.files(__package__).joinpath("page_drawing.py").read_text("utf-8")


class _Drawing:
    """A process that draws one document. It is killed at its deadline, and when its call is stopped."""

    def __init__(self, python: str, most_pages: int, cpu_s: int, at: str) -> None:
        self._most_pages, self._cpu_s, self._at = most_pages, cpu_s, at
        arguments = (cpu_s, page_drawing.MEMORY, os.getpid(), most_pages, LONGER_SIDE)
        try:
            self._process = subprocess.Popen(  # noqa: S603  a Python interpreter, with nothing of the document in its arguments
                # Isolated: neither the working folder nor the environment says what is imported.
                [python, "-I", "-S", "-c", _program(), *map(str, arguments), *filter(None, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C in a terminal reaches only the parent
            )
        except OSError as error:
            raise MediaError(at, f"no process could be started that draws the PDF: {error.strerror}") from error
        self._late = threading.Event()

    def pages_of(self, data: bytes, room: Lease) -> tuple[Picture, ...]:
        """Return the pages of a PDF, and end the process."""
        stop, longest = current(), float(self._cpu_s * _PATIENCE)
        left = longest if stop.left is None else min(longest, stop.left)
        watch = threading.Timer(left, self._end_late)
        watch.daemon = True
        watch.start()
        try:
            with stop.then(self._process.kill):
                return self._exchanged(data, room)
        except EOFError:
            stop.check()
            raise self._why_it_ended() from None
        finally:
            watch.cancel()
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            self._process.wait()

    def _exchanged(self, data: bytes, room: Lease) -> tuple[Picture, ...]:
        given, output = self._process.stdin, self._process.stdout
        assert given is not None and output is not None  # as they were asked for  # noqa: S101, PT018
        with suppress(BrokenPipeError):  # it ended early: a frame or its exit status gives the reason
            given.write(data)
            given.close()
        count = self._frame(output, page_drawing.PAGES)[0]
        if not count:
            raise UnreadableMediaError(self._at, "the PDF has no pages")
        if count > self._most_pages:
            raise MediaLimitError(
                self._at, f"a document of {count:,} pages has more than the {self._most_pages} that may be. Give those "
                "that matter",
                "pages",
            )  # fmt: skip
        room.need(count * _PAGE_BYTES + 2 * _PAGE_BYTES)  # two more, to make a page smaller
        return tuple(self._page(output) for _ in range(count))

    def _page(self, output: IO[bytes]) -> Picture:
        height, width, channels = self._frame(output, page_drawing.PAGE)
        sane = 1 <= height <= LONGER_SIDE + 1 and 1 <= width <= LONGER_SIDE + 1 and channels in {1, 3, 4}
        if not sane:
            raise EOFError
        pixels = np.empty((height, width, channels), np.uint8)
        if output.readinto(pixels.data.cast("B")) != pixels.nbytes:  # type: ignore[attr-defined]
            raise EOFError
        if channels != 3:
            pixels = np.repeat(pixels, 3, axis=2) if channels == 1 else np.ascontiguousarray(pixels[:, :, :3])
        pixels.setflags(write=False)
        return Picture(pixels)

    def _frame(self, output: IO[bytes], wanted: int) -> tuple[int, int, int]:
        found = output.read(page_drawing.FRAME.size)
        if len(found) != page_drawing.FRAME.size:
            raise EOFError
        kind, *numbers = page_drawing.FRAME.unpack(found)
        if kind == page_drawing.BROKEN:
            raise UnreadableMediaError(self._at, output.read(min(numbers[0], 1_000)).decode("utf-8", "replace"))
        if kind != wanted:
            raise EOFError
        return numbers[0], numbers[1], numbers[2]

    def _end_late(self) -> None:
        self._late.set()
        self._process.kill()

    def _why_it_ended(self) -> MediaError:
        code = self._process.wait()
        if self._late.is_set() or code == -getattr(signal, "SIGXCPU", 0):
            return MediaLimitError(
                self._at, f"drawing the pages of the PDF takes more than the {self._cpu_s} seconds of a processor that "
                "it may. Give those that matter as images",
                "seconds",
            )  # fmt: skip
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return UnreadableMediaError(
            self._at, f"the process that draws the PDF ended {how}: it is broken, or takes more than the "
            f"{page_drawing.MEMORY >> 20} MiB of memory that it may. Give its pages as images",
        )  # fmt: skip
