"""The program that draws a document: what it writes, and the limits that it sets itself."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from langchain_gemma_jax.media import page_drawing
from langchain_gemma_jax.media.page_drawing import BROKEN, FRAME, PAGE, PAGES, draw
from tests.media.samples import pdf


def frames(data: bytes, most_pages: int = 9) -> list[tuple[int, int, int, int]]:
    """Return the frames that it writes of a document, but for pixels."""
    out, found = io.BytesIO(), []
    draw(data, most_pages, 64, out)
    out.seek(0)
    while head := out.read(FRAME.size):
        kind, *numbers = FRAME.unpack(head)
        found.append((kind, *numbers))
        length = {PAGE: numbers[0] * numbers[1] * numbers[2], BROKEN: numbers[0]}.get(kind, 0)
        assert len(out.read(length)) == length
    return found


def test_what_it_writes():
    pytest.importorskip("pypdfium2")
    assert frames(pdf(2)) == [(PAGES, 2, 0, 0), (PAGE, 64, 64, 3), (PAGE, 64, 64, 3)]
    assert frames(pdf(2), 1) == [(PAGES, 2, 0, 0)], "none is drawn where there are too many"
    assert [kind for kind, *_ in frames(b"%PDF-1.4 and nothing")] == [BROKEN]


def limited(then: str, *, cpu_s: int = 60, parent: int | None = None) -> int:
    """How a process with these limits ends."""
    code = (
        f"from langchain_gemma_jax.media.page_drawing import limit, MEMORY\n"
        f"limit({cpu_s}, MEMORY, {os.getpid() if parent is None else parent})\n{then}"
    )
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of memory are Linux's")
def test_its_limits(tmp_path):
    assert limited("pass") == 0
    assert limited(f"x = bytes({page_drawing.MEMORY})") == 1, "MemoryError"
    assert limited(f"open({str(tmp_path / 'file')!r}, 'wb', 0).write(b'x')") == 1, "no file becomes longer"
    assert limited("pass", parent=os.getppid()) == 1, "its parent has ended meanwhile"


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_processors_time_ends_it():
    import signal

    assert limited("while True: pass", cpu_s=1) == -signal.SIGXCPU
