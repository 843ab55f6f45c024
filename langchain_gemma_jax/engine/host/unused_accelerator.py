"""An accelerator of this machine that JAX does not use: one warning, when the first model comes to the CPU."""

from __future__ import annotations

import threading
from pathlib import Path

from langchain_gemma_jax.engine.host.warning_sink import warn, warning_sink


class UnusedAcceleratorWarning(UserWarning):
    """JAX computes on the CPU, and this machine has an accelerator."""


def unused_accelerator(root: Path = Path("/")) -> str | None:
    """Return a sentence about an accelerator of this machine, for JAX on the CPU. None: there is none.

    ``root`` has ``/proc`` and ``/dev``.
    """
    if (root / "proc/driver/nvidia/version").exists():
        return "an NVIDIA driver is here"
    if (root / "dev/kfd").exists():
        return "an AMD GPU is here"
    return "a TPU is here" if any((root / "dev").glob("accel[0-9]*")) else None


def chosen_platforms() -> str | None:
    """Return the platforms that JAX may run on, set by JAX_PLATFORMS or its own setting. None: whatever it finds."""
    import jax

    named = jax.config.values.get("jax_platforms")
    return str(named) if named else None


class OnceOnTheCpu:
    """The warning of a process, which is given once at most."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root, self._warned, self._lock = root, False, threading.Lock()

    def look(self, platform: str, chosen: str | None) -> None:
        """Warn if a model comes to the CPU beside an accelerator. ``chosen``: the platforms that are set, or None."""
        if platform != "cpu" or chosen:
            return
        with self._lock:
            first, self._warned = not self._warned, True
        if first and (unused := unused_accelerator(self._root)) is not None:
            warn(
                UnusedAcceleratorWarning(
                    f"JAX computes on the CPU, and {unused}: answers come many times slower than they could. Install "
                    "JAX for it (see docs/install.md; `gemma-jax doctor` looks closer), or set JAX_PLATFORMS=cpu if "
                    "the CPU is meant."
                ),
                warning_sink.get(),
                stacklevel=2,
            )


on_the_cpu = OnceOnTheCpu()
