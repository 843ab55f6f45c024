"""The memory of this process, as its system counts it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_STATM = Path("/proc/self/statm")
_ROLLUP = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True)
class ProcessMemory:
    """Bytes in memory. Zeros where the system does not say."""

    resident: int = 0  # everything, also pages of files that other processes have mapped too
    private: int = 0  # without pages of files and shared memory
    share: int = 0  # resident, with each shared page divided among the processes that have it

    @classmethod
    def now(cls, *, share: bool = False) -> ProcessMemory:
        """Ask the system. ``share`` takes milliseconds, as each page is looked at; without it, it is 0."""
        try:
            resident, file = (int(pages) for pages in _STATM.read_text(encoding="ascii").split()[1:3])
        except (OSError, ValueError):
            return cls()
        page = os.sysconf("SC_PAGE_SIZE")
        return cls(resident * page, max(0, resident - file) * page, _share() if share else 0)


def _share() -> int:
    try:
        for line in _ROLLUP.read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
