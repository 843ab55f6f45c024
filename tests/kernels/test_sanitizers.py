"""The library reads and writes nothing that is not its own, and does nothing that C++ leaves undefined."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.kernels import build

ROOT = Path(__file__).parents[2]
FLAGS = ("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BEYOND = "    volatile float past = x[rows * inputs]; (void)past;\n"


def runtime() -> str | None:
    """What has to be in a process first for such a library to be loaded: of the system's compiler, if it has one."""
    compiler = build.find_compiler()
    if sys.platform != "linux" or compiler is None or len(compiler.command) > 1:
        return None
    found = subprocess.run(
        [*compiler.command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False, timeout=60
    )
    path = Path(found.stdout.strip())
    return str(path.resolve()) if found.returncode == 0 and path.is_absolute() and path.exists() else None


def drive(library: Path, count: int) -> subprocess.CompletedProcess[str]:
    preload = runtime()
    assert preload is not None
    changed = {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "JAX_PLATFORMS": "cpu",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.kernels.sanitized", str(library), str(count)],
        env=os.environ | changed, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(runtime() is None, reason="the system's compiler has no sanitizers")
def test_sanitizers_find_nothing_and_would(tmp_path, monkeypatch):
    ended = drive(build.build(tmp_path / "lib", FLAGS), 40)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert int(ended.stdout) > 1000
    sources = tmp_path / "native"
    sources.mkdir()
    for path in build.SOURCES.iterdir():
        (sources / path.name).write_bytes(path.read_bytes())
    door = sources / "handlers.cc"
    text, where = door.read_text(), "    product(matrix, given, rows, out, first, last);\n"
    assert text.count(where) == 1
    door.write_text(text.replace(where, BEYOND + where))
    monkeypatch.setattr(build, "SOURCES", sources)
    ended = drive(build.build(tmp_path / "other", FLAGS), 1)
    assert ended.returncode != 0
    assert "heap-buffer-overflow" in ended.stderr
