"""A check that refuses JAX releases that are known to be faulty, before anything is computed with them.

``langchain_gemma_jax/__init__.py`` runs it, and no module of the package can be imported without that, so no module can
skip it. It reads the installed versions and does not import JAX.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from langchain_gemma_jax.errors import UnsafeJaxError

SOUND: Final = ">=0.9.2,!=0.10.*,!=0.11.1"
"""The releases that are accepted, in pip's notation. A test checks that pyproject.toml has the same."""


@dataclass(frozen=True)
class Fault:
    """A fault of the releases from ``first`` up to, not including, ``fixed``."""

    first: tuple[int, ...]
    fixed: tuple[int, ...]
    what: str


FAULTS: Final = (
    Fault((0,), (0, 9, 2), "0.9.2 is the oldest release whose numbers were checked against the reference models"),
    Fault((0, 10), (0, 10, 2), "some programs abort the process when they are compiled for the CPU (jax#39264)"),
    Fault((0, 10, 2), (0, 11), "compiled functions silently return wrong numbers on the CPU (jax#39103)"),
    Fault((0, 11, 1), (0, 11, 2), "on the CPU, a small update inside a loop rewrites the whole array (jax#40101)"),
)


def refuse_faulty_jax() -> None:
    """Raise ``UnsafeJaxError`` if the installed or already imported JAX is a faulty release.

    A release that is newer than all known ones passes. So does a missing JAX, since importing it gives a better error.
    """
    for package in ("jax", "jaxlib"):
        for version in _versions(package):
            if (fault := find_fault(version)) is not None:
                raise UnsafeJaxError(
                    f"{package} {version} cannot be used: {fault.what}. Expected a release {SOUND}. Install one with\n"
                    f'    {sys.executable or "python"} -m pip install --upgrade "jax{SOUND}" "jaxlib{SOUND}"\n'
                    'and, for a GPU or a TPU, with "jax[cuda12]" or "jax[tpu]" in place of "jax".'
                )


def find_fault(version: str) -> Fault | None:
    """Return the fault of a release, or None.

    Only the number counts. A suffix (``.dev20260401``, ``rc1``, ``+local``) is ignored: a nightly build is treated like
    the release that follows it. A text without a number passes.
    """
    number = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    if number is None:
        return None
    release = tuple(int(part) for part in number[1].split("."))
    return next((fault for fault in FAULTS if fault.first <= release < fault.fixed), None)


def _versions(package: str) -> Iterator[str]:
    """Yield the installed version and the imported one, which differ after an upgrade in a notebook."""
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        installed = None
    imported = getattr(sys.modules.get(package), "__version__", None)
    for version in (installed, imported):
        if isinstance(version, str):
            yield version
