"""The program of a process that draws one PDF and ends, within limits of memory and time that it sets itself.

``documents.py`` starts it with its source and nothing else, so it imports nothing of this package. PDFium can neither
be interrupted nor used by two threads at a time, and its input may come from anyone. In a process of its own it blocks
no other work, sees no other document, and can be killed at any moment.

It reads the PDF from standard input, and writes frames of four numbers, of which the first is the kind: ``PAGES`` and
their number; ``PAGE`` and the height, width and channels of a page, whose pixels follow; or ``BROKEN`` and the length
of an error's text, which follows.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Any, BinaryIO

FRAME = struct.Struct("<4I")
PAGES, PAGE, BROKEN = range(1, 4)
MEMORY = 512 << 20  # bytes of address space


def limit(cpu_s: int, memory: int, parent: int) -> None:
    """Limit this process: it ends with its parent, writes no files, and takes at most this CPU time and memory."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # the parent ended before prctl was called
        sys.exit(1)
    if sys.platform != "win32":
        import resource

        limits = [(resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)]
        if sys.platform == "linux":  # elsewhere a new process already has more address space
            limits.append((resource.RLIMIT_AS, memory))
        for kind, wanted in limits:
            hard = resource.getrlimit(kind)[1]
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            # At the soft limit of CPU time comes SIGXCPU, which gives the reason; at the hard limit comes SIGKILL.
            resource.setrlimit(kind, (most, most + 1 if kind == resource.RLIMIT_CPU and most != hard else most))


def draw(data: bytes, most_pages: int, longer_side: int, out: BinaryIO) -> None:
    """Write the pages of a PDF; only their number if it is above ``most_pages``."""
    try:
        import pypdfium2

        document = pypdfium2.PdfDocument(data)
        count = len(document)
    except Exception as error:  # noqa: BLE001  what a decoder raises for broken bytes can be anything
        return _broken(f"the PDF is broken, or has a password: {str(error)[:100]}", out)
    out.write(FRAME.pack(PAGES, count, 0, 0))
    out.flush()
    if count > most_pages:
        return None
    try:
        for number in range(count):
            _draw_page(document[number], longer_side, out)
    except Exception as error:  # noqa: BLE001  as above
        _broken(f"a page of the PDF cannot be drawn: {str(error)[:100]}", out)


def _draw_page(page: Any, longer_side: int, out: BinaryIO) -> None:
    width, height = page.get_size()
    scale = longer_side / max(width, height, 1.0)
    bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
    row = bitmap.width * bitmap.n_channels
    pixels = memoryview(bitmap.buffer).cast("B")
    out.write(FRAME.pack(PAGE, bitmap.height, bitmap.width, bitmap.n_channels))
    begins = range(0, bitmap.height * bitmap.stride, bitmap.stride)
    out.writelines(pixels[begin : begin + row] for begin in begins)
    out.flush()
    pixels.release()
    bitmap.close()
    page.close()


def _broken(problem: str, out: BinaryIO) -> None:
    message = problem.encode()
    out.write(FRAME.pack(BROKEN, len(message), 0, 0) + message)


if __name__ == "__main__":
    cpu_s, memory, parent, most_pages, longer_side = map(int, sys.argv[1:6])
    limit(cpu_s, memory, parent)
    sys.path += sys.argv[6:]
    draw(sys.stdin.buffer.read(), most_pages, longer_side, sys.stdout.buffer)
    sys.stdout.flush()
    os._exit(0)  # without Python's clean-up, which nothing here needs
