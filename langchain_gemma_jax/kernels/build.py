"""Compilation of the kernels while the package is built.

It runs before the package is installed, from the build hook or by hand, so it imports nothing of the package:

    python langchain_gemma_jax/kernels/build.py          # into the checkout that it lies in
    python langchain_gemma_jax/kernels/build.py --for linux-aarch64 --into somewhere

A note is stored with the library: its digest, that of its sources, the version of XLA's interface that it was compiled
for, and the compiler. ``library.py`` checks it before it loads the library.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
LIBRARY, NOTE = "libgemma_jax_kernels.so", "kernels.json"
OLDEST = (0, 3)  # the interface of the oldest jaxlib that is supported, which newer ones have too
MINUTES = 10.0  # that compiling may take: the first time, one of the compilers makes its own library first

_X86, _ARM = ("x86_64", "AMD64", "x86-64"), ("aarch64", "arm64")
_FLAGS = ("-std=c++17", "-fPIC", "-DNDEBUG", "-fvisibility=hidden", "-ffp-contract=off", "-w", "-Wno-psabi")
_AVX2 = ("-mavx2", "-mfma", "-mf16c")
_AVX512 = ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512vnni")
_AMX = ("-mamx-tile", "-mamx-int8")
_VARIANTS: Mapping[str, tuple[Sequence[str], tuple[str, ...]]] = {  # of which machines, and by which flags
    "portable": ((*_X86, *_ARM), ()),
    "avx2": (_X86, _AVX2),
    "avx512": (_X86, (*_AVX2, *_AVX512)),
    "amx": (_X86, (*_AVX2, *_AVX512, *_AMX)),
    "neon": (_ARM, ()),
    "dotprod": (_ARM, ("-mcpu=generic+dotprod",)),
    "i8mm": (_ARM, ("-mcpu=generic+dotprod+i8mm",)),
}
_NOT_EVERYWHERE = frozenset({"amx"})  # GCC knows its instructions from 11 on, Clang from 12 on
# Which compilers need long for, and which gain nothing that was measured: what only calls, and what runs where the
# processor is none of those that the others are for.
_NOT_HOT = ("calls", "grid_rows", "variant_portable")
# All that is shown. The C++ library is inside, and some of its names are looked up in one table of the whole process:
# what other libraries look for there (ml_dtypes, for its numbers in words) must not be ours.
_SHOWN = "{ global: gemma_jax_*; local: *; };"
_INTERFACE = re.compile(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)")


class NotBuiltError(Exception):
    """The kernels cannot be compiled here. Everything works without them."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command, its name for the note, its flags and its target."""

    command: tuple[str, ...]
    name: str
    link: tuple[str, ...] = ()
    target: Target | None = None  # whose machines all run what it makes; None: those that are like this one


@dataclass(frozen=True)
class Target:
    """The machines that a library is for, with their names in Python, in the compiler and in wheels."""

    machine: str
    system: str
    triple: str
    wheel: str


TARGETS: Mapping[str, Target] = {
    "linux-x86_64": Target("x86_64", "linux", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64"),
    "linux-aarch64": Target("aarch64", "linux", "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
    "macos-arm64": Target("arm64", "darwin", "aarch64-macos.11.0", "macosx_11_0_arm64"),
}


def target_named(name: str) -> Target:
    """Return one of ``TARGETS``.

    Raises:
        NotBuiltError: there is none of this name.
    """
    if name not in TARGETS:
        raise NotBuiltError(f"expected a target, one of {', '.join(TARGETS)}, found {name!r}")
    return TARGETS[name]


def find_compiler(target: Target | None = None) -> Compiler | None:
    """Return the system's compiler, else the one of the Python package ``ziglang``, if either is installed.

    For a ``target`` it is always ``ziglang``: it has the headers of all systems, which this machine's compiler lacks.
    """
    for name in () if target else ("c++", "g++", "clang++"):
        if (found := shutil.which(name)) is not None and _runs((found, "--version")):
            link = ("-static-libstdc++", "-static-libgcc", "-Wl,-s") if sys.platform == "linux" else ()
            return Compiler((found,), _first_line((found, "--version")), link)
    if importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang")
        here = target or _here()
        where = ("-target", here.triple) if here else ()
        return Compiler((*command, "c++", *where), f"zig {_first_line((*command, 'version'))}", ("-Wl,-s",), here)
    return None


def _here() -> Target | None:
    """Return the target for this machine, if any."""
    found = (each for each in TARGETS.values() if (each.machine, each.system) == (platform.machine(), sys.platform))
    return next(found, None)


def headers() -> Path:
    """Return the folder of XLA's headers, in the installed jaxlib.

    Raises:
        NotBuiltError: there is none.
    """
    spec = importlib.util.find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = Path(folder) / "include"
        if (found / "xla" / "ffi" / "api" / "ffi.h").is_file():
            return found
    raise NotBuiltError("no jaxlib with its headers is installed where the package is built")


def interface_version(include: Path) -> tuple[int, int]:
    """Return the version of XLA's foreign function interface in these headers."""
    text = (include / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = {name: int(number) for name, number in _INTERFACE.findall(text)}
    return found["MAJOR"], found["MINOR"]


def sources_digest(folder: Path = SOURCES) -> str:
    """Return one digest of all sources, and of this file, which has the flags."""
    found = hashlib.sha256()
    for path in (*sorted(folder.iterdir()), Path(__file__)):
        content = path.read_bytes()
        found.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def build(
    folder: Path, extra: Sequence[str] = (), include: Path | None = None, *, target: Target | None = None
) -> Path:
    """Compile the library into a folder, with its note beside it, and return the library.

    Args:
        folder: where it goes.
        extra: more flags, such as those of a sanitizer.
        include: the folder of XLA's headers. By default the installed jaxlib's.
        target: the machines that it is for. By default this one.

    Raises:
        NotBuiltError: there is no compiler or no headers, or what it printed when it failed.
    """
    compiler = find_compiler(target)
    if compiler is None and target:
        raise NotBuiltError("other machines' libraries are compiled by the package ziglang, which is not installed")
    if compiler is None:
        raise NotBuiltError("no C++ compiler was found: neither c++, g++ nor clang++ on PATH, nor the package ziglang")
    include = headers() if include is None else include
    version = interface_version(include)
    machine, system = (target.machine, target.system) if target else (platform.machine(), sys.platform)
    variants = variants_for(machine, compiler)
    without = tuple(f"-DWITHOUT_{name.upper()}" for name in sorted(_NOT_EVERYWHERE - set(variants)))
    with tempfile.TemporaryDirectory(prefix="gemma-jax-kernels-") as scratch:

        def compiled(name: str) -> str:
            own = _VARIANTS[name.removeprefix("variant_")][1] if name.startswith("variant_") else without
            flags = ("-O1" if name in _NOT_HOT else "-O3", *own)
            made = f"{scratch}/{name}.o"
            source = str(SOURCES / f"{name}.cc")
            _run(compiler, *_FLAGS, *flags, *extra, f"-isystem{include}", "-c", source, "-o", made)
            return made

        with ThreadPoolExecutor(_processors()) as threads:
            objects = list(threads.map(compiled, _objects(variants)))
        made, shown = Path(scratch, LIBRARY), Path(scratch, "shown")
        shown.write_text(_SHOWN, encoding="utf-8")
        link = (*compiler.link, f"-Wl,--version-script={shown}") if system == "linux" else compiler.link
        _run(compiler, "-shared", *objects, *link, *extra, "-o", str(made))
        content = made.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    note = {
        "digest": hashlib.sha256(content).hexdigest(),
        "sources": sources_digest(),
        "interface": list(version),
        "machine": machine,
        "system": system,
        "wheel": compiler.target.wheel if compiler.target else None,
        "compiler": compiler.name,
        "variants": variants,
    }
    _replace(folder / LIBRARY, content)  # the note last: a library without one, or with another's, is never loaded
    _replace(folder / NOTE, json.dumps(note, indent=1).encode() + b"\n")
    return folder / LIBRARY


def is_current(folder: Path, target: Target | None = None) -> bool:
    """Return True if a folder holds the library of these very sources, for the oldest interface and a target.

    By default the target is this machine.
    """
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        digest = hashlib.sha256((folder / LIBRARY).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return False
    wanted = {
        "digest": digest,
        "sources": sources_digest(),
        "interface": list(OLDEST),
        "machine": target.machine if target else platform.machine(),
        "system": target.system if target else sys.platform,
    }
    if target:
        wanted["wheel"] = target.wheel
    return isinstance(note, dict) and all(note.get(name) == value for name, value in wanted.items())


def platform_tag(folder: Path, here: str) -> str:
    """Return the platform tag of a wheel with this library. ``here`` is this machine's tag."""
    found: str | None = json.loads((folder / NOTE).read_text(encoding="utf-8"))["wheel"]
    return found or re.sub(r"[-.]", "_", here)


def variants_for(machine: str, compiler: Compiler) -> list[str]:
    """Return the variants for a machine, without those whose instructions the compiler does not support."""
    return [
        name
        for name, (machines, flags) in _VARIANTS.items()
        if (name == "portable" or machine in machines) and (name not in _NOT_EVERYWHERE or _knows(compiler, flags))
    ]


def _knows(compiler: Compiler, flags: Sequence[str]) -> bool:
    with tempfile.TemporaryDirectory(prefix="gemma-jax-kernels-") as scratch:
        source = Path(scratch, "nothing.cc")
        source.touch()
        return _runs((*compiler.command, *flags, "-c", str(source), "-o", f"{scratch}/nothing.o"))


def _objects(variants: Sequence[str]) -> list[str]:
    """Return the names of the sources to compile: one per variant, and those for all. The slowest come first."""
    return [
        *(f"variant_{variant}" for variant in reversed(variants) if variant != "portable"),
        "calls",
        "speller",
        "grid_rows",
        "variant_portable",
    ]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _replace(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it: a process may have the old one mapped."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.replace(path)


def _run(compiler: Compiler, *arguments: str) -> None:
    try:
        subprocess.run(  # noqa: S603  a compiler, found on PATH or installed for this
            [*compiler.command, *arguments], check=True, capture_output=True, text=True, timeout=60 * MINUTES
        )
    except subprocess.CalledProcessError as error:
        last = "\n".join(error.stderr.strip().splitlines()[-12:])
        raise NotBuiltError(f"{compiler.name} failed:\n{last}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError(f"{compiler.name} could not be run: {error}") from error


def _runs(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


def _first_line(command: Sequence[str]) -> str:
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)  # noqa: S603
    return (found.stdout.strip().splitlines() or ["a compiler"])[0]


def main() -> None:
    """Compile into this file's checkout, or into the folder given by ``--into``."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--into", type=Path, default=Path(__file__).parent / "lib")
    arguments.add_argument("--include", type=Path, help="the folder of XLA's headers")
    arguments.add_argument("--flag", action="append", default=[], help="one more flag for the compiler")
    arguments.add_argument("--for", dest="target", choices=TARGETS, help="the machines that it is for")
    given = arguments.parse_args()
    target = target_named(given.target) if given.target else None
    try:
        print(build(given.into, given.flag, given.include, target=target))  # noqa: T201  a command's answer
    except NotBuiltError as error:
        sys.exit(f"The kernels were not compiled: {error}")


if __name__ == "__main__":
    main()
