"""The name of the platform that compiles programs here: libraries and processor. The cache has a folder for each.

Compiled programs are machine code that depends on the library that made them. Loaded by another version, or on a
processor that lacks an instruction, they crash or compute something else. So everything that could make a difference is
part of the folder's name, and all entries in the folder fit.

JAX is not imported for this, and no library is read: the metadata folders of installed packages and the sizes of the
libraries are enough.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from langchain_gemma_jax.config import processor_class

CPU_INFO: Final = Path("/proc/cpuinfo")
_OF_CLASS: Final = {  # the features that each class of processors has, as the system names them
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"},
    "amx": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni", "amx_tile", "amx_int8"},
}

# The lines on a processor's model and features, on x86 and on ARM. Other lines change from one reading to the next.
_X86: Final = frozenset({"vendor_id", "cpu family", "model", "model name", "flags"})
_ARM: Final = frozenset({"Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"})
# Packages whose versions matter: JAX, its plugins, and the libraries that its programs call on a GPU or a TPU.
_INFO: Final = re.compile(r"((?:jax|jaxlib|libtpu|jax[-_.].+|nvidia[-_.].+?))-([^-]+)(?:-.*)?\.(?:dist|egg)-info")
_PLATFORM: Final = re.compile(r"jaxlib-[A-Za-z0-9_.+]+-[0-9a-f]{3,12}")
_LIBRARY: Final = re.compile(r"\.(?:so|pyd|dylib|dll)\b")


class Installed(NamedTuple):
    """An installed package, from its ``.dist-info`` or ``.egg-info`` folder."""

    name: str
    version: str
    folder: Path


def platform_folder() -> str:
    """Return a folder's name, such as ``jaxlib-0.9.2-5f0c2d9a1b3e``. It changes with anything that matters."""
    packages = {package.name: package for package in _installed()}
    jaxlib = packages.get("jaxlib")
    version = _imported_version("jaxlib") or (jaxlib.version if jaxlib else "unknown")
    facts = [sys.implementation.cache_tag or sys.version, sys.platform, platform.machine(), version]
    facts += (f"{package.name} {package.version}" for package in packages.values())
    facts += (line for package in packages.values() for line in _recorded_libraries(package))
    if jaxlib is None or not (jaxlib.folder / "RECORD").exists():
        facts += _found_libraries()
    facts += _cpu()
    digest = hashlib.sha256("\n".join(sorted(facts)).encode(errors="surrogateescape")).hexdigest()
    return f"jaxlib-{re.sub(r'[^A-Za-z0-9.+]', '_', version)}-{digest[:12]}"


def is_platform(name: str) -> bool:
    """Return True if ``platform_folder`` gives such a name, on this machine or another."""
    return _PLATFORM.fullmatch(name) is not None


def _imported_version(package: str) -> str | None:
    """Return the version in memory, which is not the installed one if the package was upgraded while this runs."""
    version = getattr(sys.modules.get(package), "__version__", None)
    return version if isinstance(version, str) else None


def _installed() -> Iterator[Installed]:
    """Yield every package that matters. If one is installed more than once, the one that is imported comes last."""
    for entry in reversed(sys.path):
        try:
            with os.scandir(entry or ".") as folder:
                names = [item.name for item in folder]
        except OSError:  # a zip file, or nothing
            continue
        for name in names:
            if match := _INFO.fullmatch(name):
                yield Installed(match[1].lower().replace("-", "_"), match[2], Path(entry, name))


def _recorded_libraries(package: Installed) -> Iterator[str]:
    """Yield the native libraries of a package: their digests when installed, and their sizes now."""
    if package.name.startswith("nvidia"):  # never built locally: the version is enough
        return
    try:
        record = (package.folder / "RECORD").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in record.splitlines():
        path = line.partition(",")[0]
        if _LIBRARY.search(path):
            yield f"{line} {_size(package.folder.parent / path)}"


def _found_libraries() -> Iterator[str]:
    """Yield the libraries of a jaxlib that pip did not install, with their sizes and times."""
    spec = find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).iterdir():
            if _LIBRARY.search(path.name):
                yield f"{path.name} {_size(path)} {path.stat().st_mtime_ns}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _cpu() -> Iterator[str]:
    """Yield what programs for the CPU depend on: its features, and the number of cores that loops are divided over.

    With a class of processors, that is named instead of the features, where this processor is one of them.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"{cores} cores"
    try:
        with CPU_INFO.open("rb") as file:
            first = file.read(16_384).partition(b"\n\n")[0].decode(errors="surrogateescape")  # the first processor
    except OSError:  # this system has no such file. The machine's name stands for its processor
        yield platform.node()
        return
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in _X86 | _ARM]
    features = {word for line in lines if line.startswith("flags") for word in line.partition(":")[2].split()}
    if (kind := processor_class()) is not None and features >= _OF_CLASS[kind]:
        yield f"class {kind}"
        return
    yield from lines
