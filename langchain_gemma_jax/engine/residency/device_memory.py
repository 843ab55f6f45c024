"""The memory that this process may use on a device: one rule, from which every budget and every share is computed.

A device with memory statistics reports it. Other devices are the host: there it is the machine's memory, or a lower
limit. Containers, systemd's slices and batch systems set limits in control groups. Each group of the hierarchy can have
one, and the lowest from the process's own group up to the root applies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes
from langchain_gemma_jax.engine.base.settings import CurrentSettings, Settings
from langchain_gemma_jax.engine.residency.device_use import DeviceLimits
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.seams.placement import Placement

SHARE = 0.9  # of a device's memory is for the engine: the rest is for the allocator's gaps
HOST_SHARE = 0.8  # the same if the device is the host, which runs other programs too
KV_PARTS = 4  # one part in this number of the device's memory is for conversations
LEAST_IDLE = 64 << 20  # bytes that idle conversations may keep, however small the model
HOST_KV_PARTS = 16  # one part in this number of the host's memory is for conversations that had to leave a device

# Above memory.high the kernel slows the process down and takes memory back.
_LIMIT_FILES = {
    "cgroup2": ("memory.max", "memory.high"),
    "cgroup": ("memory.limit_in_bytes",),  # its "unlimited" is a number larger than any memory
}
_V1_OF_ALL = re.compile(r"^hierarchical_memory_limit ([0-9]+)$", re.MULTILINE)  # includes groups outside the container
_ESCAPED = re.compile(r"\\([0-7]{3})")  # mountinfo's form of blanks
_MOST_CHARACTERS = 1 << 20  # of a file to read


class DeviceBudgets:
    """The bytes that models and their conversations may take together on each placement's devices.

    They are computed once for each placement, and again when the setting changes.
    """

    def __init__(self, settings: CurrentSettings) -> None:
        self._settings = settings
        self._known: dict[tuple[Hashable, object], int] = {}
        self._capacities: dict[Hashable, int] = {}

    def of(self, home: Hashable) -> int:
        """Return the bytes for each device of a placement."""
        settings = self._settings.now
        key = (home, settings.memory_budget)
        if key not in self._known:
            if not isinstance(home, Placement):
                raise TypeError(f"expected a placement, found {home!r}")
            self._known[key] = memory_budget(settings, home)
            self._capacities[home] = device_memory(home)
        return self._known[key]

    def limits(self, home: Hashable) -> DeviceLimits:
        """Return the bytes that each device of a placement has, and its budget."""
        budget = self.of(home)
        return DeviceLimits(self._capacities[home], budget)


def memory_budget(settings: Settings, where: Placement) -> int:
    """Return the bytes that models and their conversations may take together on each device of a placement."""
    if settings.memory_budget is not None:
        return parse_bytes("memory_budget", settings.memory_budget)
    own = where.memory_limit()
    if own is None and where.platform == "gpu":  # the host's memory would be no measure of it
        raise InputError(
            "JAX's allocator keeps no books of this GPU, as with XLA_PYTHON_CLIENT_ALLOCATOR=platform. Say how much "
            'models may take: configure(memory_budget="20GB"), or leave JAX its usual allocator.'
        )
    return int(HOST_SHARE * host_memory()) // len(where.own) if own is None else int(SHARE * own)


def kv_budget(settings: Settings, where: Placement) -> int:
    """Return the bytes for conversations on each device of a placement."""
    return device_memory(where) // KV_PARTS if settings.kv_bytes is None else settings.kv_bytes


def idle_kv_budget(settings: Settings, where: Placement, weights: int) -> int:
    """Return the bytes that idle conversations may keep on each device: no more than the weights, unless it is set.

    Beside a very small model they may keep some more.
    """
    allowed = kv_budget(settings, where)
    return allowed if settings.kv_bytes is not None else min(allowed, max(weights, LEAST_IDLE))


def host_kv_budget(settings: Settings) -> int:
    """Return the bytes of host memory for conversations that had to leave their device."""
    return host_memory() // HOST_KV_PARTS if settings.host_kv_bytes is None else settings.host_kv_bytes


def device_memory(where: Placement) -> int:
    """Return the bytes of each device of a placement for this process. Devices without statistics share the host's."""
    own = where.memory_limit()
    return host_memory() // len(where.own) if own is None else own


def host_memory(root: Path = Path("/")) -> int:
    """Return the bytes of the machine's memory that this process may use. ``root`` has ``/proc`` and ``/sys``."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_group_limits(root), *_process_limits()])


def _process_limits() -> Iterator[int]:
    """Yield the limits of ``ulimit``: on the address space, and on the data segment."""
    try:
        import resource
    except ImportError:  # no Unix
        return
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(which)[0]
        if limit != resource.RLIM_INFINITY and limit > 0:
            yield limit


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process's control groups. A text that cannot be parsed is no limit."""
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
    """Return the process's own group in cgroup v2 and in v1's memory hierarchy, from ``4:memory:/slurm/job_1``."""
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
    """Return the folders of a group and the groups above it, as far as they are mounted."""
    seen = list(_mounted(mounts, kind))
    above = [(top, place) for top, place in seen if group.is_relative_to(top) and ".." not in group.parts]
    found: dict[PurePosixPath, None] = {}  # in order, each once
    for top, place in above:
        own = place / group.relative_to(top)
        found |= dict.fromkeys(folder for folder in (own, *own.parents) if folder.is_relative_to(place))
    # A container may see its own group under another name, or the process may have been moved out of it.
    return list(found) or [place for _, place in seen]


def _mounted(mounts: str, kind: str) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Yield a hierarchy's roots and mount points, from lines ``36 35 0:32 /root /mount rw - cgroup source options``."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, about = before.split(" "), after.split(" ")
        if len(fields) < 5 or about[0] != kind or not (fields[3].startswith("/") and fields[4].startswith("/")):
            continue
        if kind == "cgroup2" or "memory" in about[-1].split(","):
            yield _plain(fields[3]), _plain(fields[4])


def _plain(escaped: str) -> PurePosixPath:
    return PurePosixPath(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), escaped))


def _whole(text: str) -> int:
    """Return a number of bytes.

    Raises:
        ValueError: the text is no number, or 0.
    """
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise ValueError(text[:40])
    return int(digits)


def _text(path: Path) -> str:
    """Return a file's text, or "" if it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_CHARACTERS)
    except (OSError, ValueError):  # a ValueError: an invalid path
        return ""
