"""The kernels under the compiler's sanitizers: nothing is read or written beside what was handed over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.kernels.build import build, find_compiler
from langchain_gemma_jax.kernels.library import kernels

ROOT = Path(__file__).parents[2]
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g1")
GOOD = """
import ctypes, sys
from dataclasses import replace
import numpy as np
from tests.kernels import made_up_attention as attention, made_up_matrices as matrices
from tests.kernels import test_attention, test_fused_ops, test_products

loaded = ctypes.CDLL(sys.argv[1])
for dtype in attention.STORED:
    test_attention.try_shapes(dtype, 60, 7, loaded)
    case = attention.made_up(np.random.default_rng(8), dtype)
    for first in (-(2**31), -1, 10**6, 2**31 - 1):
        at = case.places.copy()
        at[:, 0] = first
        for variant in matrices.variants(loaded):
            for apart in (False, True):
                attention.attend_by_hand(loaded, variant, replace(case, places=at), apart=apart)
for kind in test_products.TARGETS:
    test_products.try_shapes(kind, 25, 7, loaded)
test_fused_ops.try_shapes(60, 7, loaded)
test_fused_ops.try_best(60, 7, loaded)
print("nothing was seen")
"""
BAD = """
import ctypes, sys
from dataclasses import replace
import numpy as np
from tests.kernels import made_up_attention as attention

class Short(np.ndarray):  # says that it is longer than it is
    shape = property(lambda self: (1, 1, 4000, 64))

loaded = ctypes.CDLL(sys.argv[1])
one, at = np.ones((1, 1, 300, 64), np.float32), np.array([[3999, 1, 0]], np.int32)
case = attention.Case(np.ones((1, 1, 1, 64), np.float32), one.view(Short), one, at, np.zeros((1, 1), np.int32))
attention.attend_by_hand(loaded, "portable", case, apart=False)
print("nothing was seen")
"""


def runtime(name: str) -> str | None:
    """Where the compiler keeps a sanitizer's library, which has to be there before Python is."""
    command = find_compiler()
    if command is None or sys.platform != "linux":
        return None
    found = subprocess.run([*command.command, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = found.stdout.strip()
    return path if Path(path).is_absolute() and Path(path).exists() else None


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not kernels().run, reason=f"no kernels run: {kernels().why}")
@pytest.mark.skipif(runtime("libasan.so") is None, reason="this compiler has no sanitizers of its own")
def test_nothing_beside_what_was_handed_over_is_touched(tmp_path):
    """And what is, is seen."""
    library = build(tmp_path / "lib", FLAGS)
    environment = os.environ | {
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, str(library)]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    good = run(GOOD)
    assert (good.returncode, good.stdout) == (0, "nothing was seen\n"), good.stderr[-4000:]
    bad = run(BAD)
    assert bad.returncode != 0
    assert "heap-buffer-overflow" in bad.stderr, bad.stderr[-4000:]
