"""The library of kernels: checked, loaded once per process, and registered with XLA.

A library is loaded only if its digest is that of the compiled file, if it was compiled from the sources in ``native/``,
and for this kind of machine and an interface that this jaxlib has. XLA's own check comes too late: a library for
another interface breaks the whole CPU backend.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_gemma_jax.config import KERNEL_VARIANTS, kernels_wanted
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.kernels.build import LIBRARY, NOTE, NotBuiltError, headers, interface_version, sources_digest
from langchain_gemma_jax.kernels.targets import (
    ATTENTION,
    FUSED_OPS,
    IN_BLOCKS,
    KINDS,
    VACANT,
    VERSION,
    function,
    fused_op,
    target,
)

FOLDER = Path(__file__).parent / "lib"
_BEST_FIRST = ("amx", "avx512", "avx2", "i8mm", "dotprod", "neon", "portable")
_BY_NAME_ONLY = frozenset({"i8mm"})  # not yet timed on a machine that has it, so never chosen automatically
_AGAIN = "Install the package again: pip compiles it, scripts/setup in a checkout."

_lock = threading.RLock()
_known: Kernels | None = None


@dataclass(frozen=True)
class Kernels:
    """The state of the kernels in this process: the variant that runs, and the reason for it or for none."""

    variant: str | None  # the instruction set; None: XLA computes everything
    why: str
    digest: str = ""  # of the library
    code: ctypes.CDLL | None = field(default=None, compare=False, repr=False)  # the library itself

    @property
    def run(self) -> bool:
        """True if the kernels run."""
        return self.variant is not None

    @property
    def identity(self) -> str:
        """The key of measurements with these kernels: the variant, and the library's digest."""
        return f"kernels {self.variant} {self.digest}" if self.run else "no kernels"

    @property
    def targets(self) -> str:
        """The key of compiled programs with these kernels: whether they run, and the version of their interface."""
        return f"kernels {VERSION}" if self.run else "no kernels"

    def __str__(self) -> str:
        return f"{self.variant}: {self.why}" if self.run else f"off: {self.why}"


class _RefusedError(Exception):
    """The library cannot be used. The message says why."""


def kernels() -> Kernels:
    """Return the kernels of this process. The first call loads them.

    Raises:
        InputError: ``GEMMA_JAX_KERNELS`` is unknown, or an instruction set that this processor lacks.
    """
    global _known  # noqa: PLW0603  one library a process, as XLA has one table of targets
    with _lock:
        if _known is None:
            _known = _load(kernels_wanted(), FOLDER)
        return _known


def in_words() -> str:
    """Return a line for people: the kernels that run here and why, or why the requested ones cannot."""
    try:
        state = kernels()
    except InputError as error:
        return f"off: {error}"
    import jax

    if state.run and (backend := jax.default_backend()) != "cpu":
        return f"off: JAX computes on the {backend.upper()}"
    return str(state)


def _load(wanted: str, folder: Path) -> Kernels:
    if wanted == "off":
        return Kernels(None, "GEMMA_JAX_KERNELS=off")
    try:
        note = checked(folder)
        library = ctypes.CDLL(str(folder / LIBRARY))
        variant = _chosen(library, wanted, note["variants"])
        _register(library)
    except (_RefusedError, OSError, AttributeError) as error:
        if wanted in KERNEL_VARIANTS:
            raise InputError(f"GEMMA_JAX_KERNELS={wanted}: the kernels cannot be used here. {error}") from error
        return Kernels(None, str(error))
    how = "chosen for this processor" if wanted == "auto" else f"GEMMA_JAX_KERNELS={wanted}"
    return Kernels(variant, f"{how}, compiled by {note['compiler']}", note["digest"], library)


def checked(folder: Path) -> Mapping[str, Any]:
    """Return the note of a library, after a check that the library may be loaded.

    Raises:
        _RefusedError: it may not be loaded. The message says why.
    """
    try:
        note = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        content = (folder / LIBRARY).read_bytes() if "digest" in note else b""
    except FileNotFoundError:
        raise _RefusedError(f"They were not compiled. {_AGAIN}") from None
    except (OSError, ValueError) as error:
        raise _RefusedError(f"{folder} cannot be read: {error}. {_AGAIN}") from error
    if not isinstance(note, dict) or "digest" not in note:
        why = note.get("why") if isinstance(note, dict) else None
        raise _RefusedError(f"They were not compiled: {why or 'nothing says why'}.")
    if hashlib.sha256(content).hexdigest() != note["digest"]:
        raise _RefusedError(f"{folder / LIBRARY} is not the file that was compiled: its digest is another. {_AGAIN}")
    if note.get("sources") != sources_digest():
        raise _RefusedError(f"{folder / LIBRARY} was compiled from other sources than these. {_AGAIN}")
    if (note.get("machine"), note.get("system")) != (platform.machine(), sys.platform):
        found = f"{note.get('machine')} and {note.get('system')}"
        raise _RefusedError(
            f"They were compiled for {found}; this is {platform.machine()} and {sys.platform}. {_AGAIN}"
        )
    _check_interface(note.get("interface"))
    return note


def _check_interface(wanted: object) -> None:
    """Refuse a library for another version of XLA's interface than this jaxlib has, or for a newer one."""
    try:
        here = interface_version(headers())
    except (NotBuiltError, OSError, KeyError) as error:
        raise _RefusedError(f"The version of XLA's interface in this jaxlib cannot be read: {error}.") from error
    fits = isinstance(wanted, list) and len(wanted) == 2 and wanted[0] == here[0] and wanted[1] <= here[1]
    if not fits:
        raise _RefusedError(
            f"They were compiled for version {wanted} of XLA's interface; this jaxlib has {here}. {_AGAIN}"
        )


def _chosen(library: ctypes.CDLL, wanted: str, variants: Sequence[str]) -> str:
    """Select a variant in the library, and return its name."""
    runs = [name for name in _BEST_FIRST if name in variants and library.gemma_jax_runs(name.encode()) == 0]
    if wanted in KERNEL_VARIANTS and wanted not in runs:
        raise InputError(
            f"GEMMA_JAX_KERNELS={wanted}: this processor has no such instructions, or they were not compiled. "
            f"What runs here: {', '.join(runs)}, auto, off."
        )
    variant = wanted if wanted in KERNEL_VARIANTS else next(name for name in runs if name not in _BY_NAME_ONLY)
    if library.gemma_jax_choose(variant.encode()) != 0:
        raise _RefusedError(f"The variant {variant} cannot be chosen. {_AGAIN}")
    return variant


def _register(library: ctypes.CDLL) -> None:
    """Register every target with XLA. All symbols are looked up before the first is registered."""
    import jax

    wanted = [(kind, False) for kind in KINDS] + [(kind, True) for kind in IN_BLOCKS]
    symbols = {target(kind, rounded=rounds): function(kind, rounded=rounds) for kind, rounds in wanted}
    symbols |= {ATTENTION: "gemma_jax_attention", VACANT: "gemma_jax_vacant"}
    symbols |= {fused_op(name): f"gemma_jax_{name}" for name in FUSED_OPS}
    entries = {name: getattr(library, symbol) for name, symbol in symbols.items()}
    for name, entry in entries.items():
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(entry), platform="cpu")
