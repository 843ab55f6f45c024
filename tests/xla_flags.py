"""Which of XLA's flags the tests are run with: those that this jaxlib knows of the ones that make compiling quick."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence

QUICK_COMPILES = ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1")
"""With these, where they are known, XLA:CPU takes less than half the time; results may differ in their last bits."""

_OTHER_KERNELS = {
    "xla_cpu_use_fusion_emitters": True
}  # flags by which kernels are made in another way -> as users' XLA

# jaxlib reads the flags when the first options of a compilation are made, and ends the process over one that it does
# not know. So it is asked in a process of its own.
_ASK = "from jaxlib import xla_client; xla_client.CompileOptions(); print('read')"
_UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")


class XlaFlagsNotReadError(RuntimeError):
    """jaxlib ended, or did not start, when it was asked which flags it knows."""


def known(flags: Sequence[str]) -> tuple[str, ...]:
    """Those of the flags that this jaxlib knows; an error, with what jaxlib printed, when it cannot be asked."""
    ended = _ask(flags)
    unknown = _UNKNOWN.search(ended.stderr)
    if ended.returncode != 0 and unknown is not None:
        flags = [flag for flag in flags if flag not in unknown[1].split()]
        ended = _ask(flags)
    if ended.returncode != 0 or ended.stdout != "read\n":
        raise XlaFlagsNotReadError(
            f"The tests cannot start: jaxlib ended with status {ended.returncode} when it was asked to read "
            f"XLA_FLAGS={' '.join(flags)!r}. It printed:\n\n{(ended.stdout + ended.stderr).strip()}\n\n"
            "Where it names a flag: take that flag out of QUICK_COMPILES in tests/xla_flags.py. "
            f"Else see whether JAX works here at all: {sys.executable} -c 'import jax; print(jax.numpy.ones(1))'"
        )
    return tuple(flags)


def as_users() -> dict[str, bool]:
    """Options for one compilation that makes the kernels of users' XLA, whatever flags the tests are run with."""
    given = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in _OTHER_KERNELS.items() if f"--{name}=" in given}


def _ask(flags: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XLA_FLAGS": " ".join(flags)}
    return subprocess.run([sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=False)
