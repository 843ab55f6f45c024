"""What this process may have of a device's memory: one rule, from which every budget and every share follows.

A device that keeps statistics says it itself. The others are the host: there it is the machine's memory, or less where
somebody has set a limit. Limits are set in control groups: by containers, systemd's slices, batch systems. Each group
of the hierarchy can have one, and the least of those from the process's own group to the root is what counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes
from langchain_gemma_jax.engine.base.settings import CurrentSettings, Settings
from langchain_gemma_jax.models.seams.placement import Placement

SHARE = 0.9  # of a device's memory that is the engine's: the rest is for what allocators cannot fill
HOST_SHARE = 0.8  # the same where the device is the host, which runs other things too
KV_PARTS = 4  # of the device's memory, one part in so many is for conversations
HOST_KV_PARTS = 16  # of the host's memory, one part in so many is for conversations that had to leave a device

_LIMIT_FILES = {
    "cgroup2": ("memory.max", "memory.high"),  # more than the second is taken away again, at the cost of standing still
    "cgroup": ("memory.limit_in_bytes",),  # its "unlimited" is a number larger than any memory
}
_V1_OF_ALL = re.compile(r"^hierarchical_memory_limit ([0-9]+)$", re.MULTILINE)  # groups that a container cannot see too
_ESCAPED = re.compile(r"\\([0-7]{3})")  # as mountinfo has blanks
_MOST_CHARACTERS = 1 << 20  # of a file that is looked at


class DeviceBudgets:
    """What models and their conversations may take together of each place's devices, by the settings in force.

    Each place is asked once, and again when the setting was changed.
    """

    def __init__(self, settings: CurrentSettings) -> None:
        self._settings = settings
        self._known: dict[tuple[Hashable, object], int] = {}

    def of(self, home: Hashable) -> int:
        """Bytes of each device of a place."""
        settings = self._settings.now
        key = (home, settings.memory_budget)
        if key not in self._known:
            if not isinstance(home, Placement):
                raise TypeError(f"expected a placement, found {home!r}")
            self._known[key] = memory_budget(settings, home)
        return self._known[key]


def memory_budget(settings: Settings, where: Placement) -> int:
    """Bytes of each device of a place that models and their conversations may take together."""
    if settings.memory_budget is not None:
        return parse_bytes("memory_budget", settings.memory_budget)
    own = where.memory_limit()
    return int(HOST_SHARE * host_memory()) // len(where.own) if own is None else int(SHARE * own)


def kv_budget(settings: Settings, where: Placement) -> int:
    """Bytes of each device of a place for conversations."""
    return device_memory(where) // KV_PARTS if settings.kv_bytes is None else settings.kv_bytes


def host_kv_budget(settings: Settings) -> int:
    """Bytes of host memory for conversations that had to leave their device."""
    return host_memory() // HOST_KV_PARTS if settings.host_kv_bytes is None else settings.host_kv_bytes


def device_memory(where: Placement) -> int:
    """Bytes of each device of a place that this process may have. Devices that say nothing share the host's."""
    own = where.memory_limit()
    return host_memory() // len(where.own) if own is None else own


def host_memory(root: Path = Path("/")) -> int:
    """Bytes of the machine's memory that this process may have. ``root`` is where ``/proc`` and ``/sys`` are."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_group_limits(root), *_process_limits()])


def _process_limits() -> Iterator[int]:
    """What ``ulimit`` allows: addresses, and memory of its own."""
    try:
        import resource
    except ImportError:  # no Unix
        return
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(which)[0]
        if limit != resource.RLIM_INFINITY and limit > 0:
            yield limit


def _group_limits(root: Path) -> Iterator[int]:
    """The limits of the control groups that the process is in. What cannot be understood is no limit."""
    groups = _groups(_text(root / "proc/self/cgroup"))
    for kind, files in _LIMIT_FILES.items():
        if kind in groups:
            for place in _folders(_text(root / "proc/self/mountinfo"), kind, groups[kind]):
                folder = root / place.relative_to("/")
                for name in files:
                    with suppress(ValueError):  # "max"
                        yield _whole(_text(folder / name))
                if kind == "cgroup" and (found := _V1_OF_ALL.search(_text(folder / "memory.stat"))):
                    with suppress(ValueError):
                        yield _whole(found[1])


def _groups(listed: str) -> dict[str, PurePosixPath]:
    """The process's own group, in the new hierarchy and in the old one for memory: ``4:memory:/slurm/job_1``."""
    found: dict[str, PurePosixPath] = {}
    for line in listed.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        kind = (
            "cgroup" if "memory" in controllers.split(",") else "cgroup2" if number == "0" and not controllers else ""
        )
        if kind and path.startswith("/"):
            found[kind] = PurePosixPath(path.removesuffix(" (deleted)"))
    return found


def _folders(mounts: str, kind: str, group: PurePosixPath) -> list[PurePosixPath]:
    """Where a group and those above it can be looked at, as far as they are mounted."""
    seen = list(_mounted(mounts, kind))
    above = [(top, place) for top, place in seen if group.is_relative_to(top) and ".." not in group.parts]
    found: dict[PurePosixPath, None] = {}  # in their order, each once
    for top, place in above:
        own = place / group.relative_to(top)
        found |= dict.fromkeys(folder for folder in (own, *own.parents) if folder.is_relative_to(place))
    # A container may see its own group under another name than the process has, or the process may be moved out of it.
    return list(found) or [place for _, place in seen]


def _mounted(mounts: str, kind: str) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Which part of a hierarchy is mounted, and where: ``36 35 0:32 /its/root /where rw - cgroup source options``."""
    for line in mounts.splitlines():
        before, _, behind = line.partition(" - ")
        fields, about = before.split(" "), behind.split(" ")
        if len(fields) < 5 or about[0] != kind or not (fields[3].startswith("/") and fields[4].startswith("/")):
            continue
        if kind == "cgroup2" or "memory" in about[-1].split(","):
            yield _plain(fields[3]), _plain(fields[4])


def _plain(escaped: str) -> PurePosixPath:
    return PurePosixPath(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), escaped))


def _whole(text: str) -> int:
    """A number of bytes.

    Raises:
        ValueError: it is none, or 0.
    """
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise ValueError(text[:40])
    return int(digits)


def _text(path: Path) -> str:
    """A file's text, or nothing."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_CHARACTERS)
    except (OSError, ValueError):  # the second: no path at all
        return ""
