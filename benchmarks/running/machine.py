"""Facts that figures depend on: the processor, its cores, and how much of them others used meanwhile."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.running.serve import Json

VECTORS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "asimd", "sve", "bf16")

CLASSES = {
    "amx_int8": "AMX",
    "avx512_vnni": "AVX-512",
    "avx2": "AVX2",
    "i8mm": "i8mm",
    "asimddp": "NEON",
}  # widest first


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> Mapping[str, Json]:
    """Facts for the report."""
    return {
        "processor": processor(_read("/proc/cpuinfo")),
        "class": processor_class(_read("/proc/cpuinfo"), platform.machine()),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


class Others:
    """Cores that everybody else has kept busy since this was made, the hypervisor's other guests too."""

    def __init__(self) -> None:
        self._then = self._now()

    def cores_used(self) -> float | None:
        """Return their average; None where the system does not tell. Children count until they have been waited for."""
        then, now = self._then, self._now()
        if then is None or now is None:
            return None
        return max(0.0, (now[1] - then[1]) / (now[0] - then[0]))

    @staticmethod
    def _now() -> tuple[float, float] | None:
        """The time, and the seconds of all cores that went to others, both since some beginning."""
        busy = busy_seconds(_read("/proc/stat"), os.sysconf("SC_CLK_TCK"))
        return None if busy is None else (time.monotonic(), busy - sum(os.times()[:4]))


def busy_seconds(stat: str, ticks: int) -> float | None:
    """Return the seconds in the first line of ``/proc/stat``, of all cores together: all but waiting."""
    name, *fields = stat.partition("\n")[0].split() or [""]
    if name != "cpu" or len(fields) < 8:
        return None
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, fields[:8])
    return (user + nice + system + sum(interrupts_and_stolen)) / ticks


def processor_class(cpuinfo: str, kind: str) -> str:
    """The class that figures are comparable in: by the widest instructions that multiply."""
    flags = _flags(_fields(cpuinfo))
    return next((name for flag, name in CLASSES.items() if flag in flags), kind)


def processor(cpuinfo: str) -> str:
    """The processor's name and the vector extensions that decide how fast it multiplies."""
    fields = _fields(cpuinfo)
    flags = _flags(fields)
    known = [flag for flag in VECTORS if flag in flags]
    model = fields.get("model name") or platform.processor() or platform.machine()
    return f"{model} ({', '.join(known)})" if known else model


def _fields(cpuinfo: str) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields


def _flags(fields: Mapping[str, str]) -> list[str]:
    return fields.get("flags", fields.get("Features", "")).split()


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
