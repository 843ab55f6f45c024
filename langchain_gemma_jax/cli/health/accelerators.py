"""The doctor's findings on an accelerator's software: the driver, and the packages that JAX uses it with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from langchain_gemma_jax.cli.health.findings import Finding, Verdict
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes

LEAST_DRIVER = {"12": 525, "13": 580}  # of NVIDIA's, by the CUDA that the plugin is for
NAMED = ("cuda-runtime", "cudnn", "nccl")  # of NVIDIA's packages, those that a report of a fault needs
_VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+)\.(\d+(?:\.\d+)?)")


def accelerator_software(
    root: Path = Path("/"), version_of: Callable[[str], str | None] | None = None
) -> Iterator[Finding]:
    """Yield what there is of NVIDIA's driver and of JAX's plugins, and what of it does not go together.

    Args:
        root: has ``/proc``.
        version_of: returns the version of an installed package, None if it is not. None: as Python says.
    """
    version_of = version_of or installed
    driver = driver_version(root)
    plugins = {cuda: version for cuda in LEAST_DRIVER if (version := version_of(f"jax-cuda{cuda}-plugin"))}
    if driver is not None or plugins:
        yield _nvidia(driver, plugins, version_of)
    if (tpu := version_of("libtpu")) is not None:
        yield Finding("TPU software", Verdict.OK, f"libtpu {tpu}")


def _nvidia(driver: str | None, plugins: dict[str, str], version_of: Callable[[str], str | None]) -> Finding:
    versions = [f"driver {driver}" if driver else "no driver"]
    versions += [f"jax-cuda{cuda}-plugin {version}" for cuda, version in plugins.items()]
    for cuda in plugins:
        versions += [f"{name} {version}" for name in NAMED if (version := version_of(f"nvidia-{name}-cu{cuda}"))]
    text, jax = ", ".join(versions), version_of("jax") or ""
    if driver is None:
        return Finding("NVIDIA software", Verdict.WARN, text, "Install NVIDIA's driver: JAX brings all else.")
    if not plugins:
        return Finding("NVIDIA software", Verdict.WARN, text, "Install JAX for the card: pip install '.[cuda]'.")
    if len(plugins) > 1:
        return Finding("NVIDIA software", Verdict.WARN, text, "Keep one of the two plugins: JAX takes either.")
    ((cuda, plugin),) = plugins.items()
    if int(driver.partition(".")[0]) < LEAST_DRIVER[cuda]:
        needs = f"CUDA {cuda} needs a driver from {LEAST_DRIVER[cuda]} on: install a newer one"
        older = ", or the plugin for CUDA 12" if cuda == "13" and driver >= "525" else ""
        return Finding("NVIDIA software", Verdict.BAD, text, f"{needs}{older}.")
    if jax.split(".")[:2] != plugin.split(".")[:2]:
        return Finding("NVIDIA software", Verdict.WARN, f"{text}, jax {jax}", "Install both in one release.")
    return Finding("NVIDIA software", Verdict.OK, text)


def driver_version(root: Path = Path("/")) -> str | None:
    """Return the version of NVIDIA's driver, such as "580.65.06". None: there is none."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _VERSION.search(text)
    return f"{found[1]}.{found[2]}" if found else "of an unknown version"


def installed(package: str) -> str | None:
    """Return the version of an installed package; None if it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def pool_of(limit: int, fraction: str) -> Finding:
    """Return what JAX may take of a card. ``fraction``: what ``XLA_CLIENT_MEM_FRACTION`` says, or ""."""
    if fraction:
        return Finding("JAX's pool", Verdict.OK, f"{show_bytes(limit)}, as XLA_CLIENT_MEM_FRACTION={fraction} says")
    return Finding(
        "JAX's pool",
        Verdict.OK,
        f"{show_bytes(limit)}: three quarters of the card, unless JAX is set otherwise. XLA_CLIENT_MEM_FRACTION=.95 "
        "gives it more, before JAX begins",
    )
