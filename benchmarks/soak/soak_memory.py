"""Parts of a process's resident memory, as far as Linux, glibc, Python and the engine say."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax.engine.api.report import Report

_MIB = 2**20
_ARENAS = re.compile(r"(\d+) arenas \* (\d+) bytes/arena")


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


@dataclass(frozen=True)
class MemoryParts:
    """The parts, in MiB. All but ``rest`` were asked for."""

    resident: float
    files: float
    """Libraries, and whatever else of files is mapped: in the page cache once for all processes."""
    code: float
    """Compiled programs' machine code."""
    allocated: float
    """Memory taken from glibc and in use: arrays, and all that C++ has, compiled programs among it."""
    free: float
    """Memory given back to glibc, which keeps it for the next request. It need not be resident."""
    python: float
    """The arenas of Python's own objects."""
    weights: float
    """Weights of models: part of ``allocated``, or of ``files`` where they are mapped."""
    conversations: float
    """Keys and values of conversations on the device: part of ``allocated``."""
    parked: float
    """Keys and values that were moved to host memory: part of ``allocated``."""

    @property
    def rest(self) -> float:
        """The remainder: stacks of threads, and anonymous maps of libraries. Below 0: not all is resident."""
        return self.resident - self.files - self.code - self.allocated - self.free - self.python

    def __str__(self) -> str:
        named = f"weights {self.weights:.0f}, conversations {self.conversations:.0f}, parked {self.parked:.0f}"
        others = self.allocated - self.weights - self.conversations - self.parked
        return (
            f"{self.resident:.0f} MiB = files {self.files:.0f} + allocated {self.allocated:.0f} ({named}, programs and "
            f"all else {others:.0f}) + free in the allocator {self.free:.0f} + Python's objects {self.python:.0f} + "
            f"machine code {self.code:.0f} + the rest {self.rest:.0f}"
        )


def memory_parts(report: Report) -> MemoryParts:
    """Return those of this process now, with what its engine reports. On Linux, with glibc."""
    status = _status()
    told = _mallinfo()
    return MemoryParts(
        resident=status["VmRSS"] / 1024,
        files=(status["RssFile"] + status["RssShmem"]) / 1024,
        code=sum(_code()) / 1024,
        allocated=(told.uordblks + told.hblkhd) / _MIB,
        free=told.fordblks / _MIB,
        python=_python_arenas() / _MIB,
        weights=sum(model.weights for model in report.models) / _MIB,
        conversations=report.kv_bytes / _MIB,
        parked=report.host_kv_bytes / _MIB,
    )


def _status() -> dict[str, int]:
    """Return the lines of the process's status that are kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    words = (line.split() for line in lines if line.endswith(" kB"))
    return {name.removesuffix(":"): int(size) for name, size, _ in words}


def _mallinfo() -> _Mallinfo2:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    found: _Mallinfo2 = mallinfo2()
    return found


def _code() -> Iterator[int]:
    """Yield the resident kB of each map that can be run and is of no file."""
    runs = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            runs = "x" in words[1] and len(words) < 6
        elif runs and words[0] == "Rss:":
            yield int(words[1])


def _python_arenas() -> int:
    """Return the bytes of Python's arenas, which it tells standard error alone, in C."""
    libc, before = ctypes.CDLL(None), os.dup(2)
    with tempfile.TemporaryFile() as told:
        try:
            libc.fflush(None)
            os.dup2(told.fileno(), 2)
            sys._debugmallocstats()  # noqa: SLF001  there is no other way to ask
            libc.fflush(None)
        finally:
            os.dup2(before, 2)
            os.close(before)
        told.seek(0)
        found = _ARENAS.search(told.read().decode(errors="replace"))
    return int(found[1]) * int(found[2]) if found else 0
