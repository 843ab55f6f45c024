"""A cache that another process filled, mounted read-only as in an image or a pod: used, and left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILL = """
from langchain_gemma_jax import configure, engine
configure(max_context=64)
engine().warmup("sprout-s", progress=False)
"""
USE = """
import json, sys, warnings
warnings.simplefilter("error")
from langchain_gemma_jax import ChatGemmaJax, configure, engine
found = []
for context in (64, 96):  # the second one was not warmed up
    configure(max_context=context)
    ChatGemmaJax(model="sprout-s", max_tokens=3).invoke("Hi")
    report = engine().report()
    found.append([report.cache_hits > 0, report.cache_misses > 0])
    engine().close()
print(json.dumps(found))
"""
MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def facts(folder: Path) -> dict[str, tuple[int, int]]:
    """Names, sizes and times: whatever is written changes one of them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.stat()
        found[str(path.relative_to(folder))] = (seen.st_size, seen.st_mtime_ns)
    return found


def mounts() -> bool:
    """Return True if this process may mount something for a child of its own."""
    tried = ["unshare", "-m", "mount", "--bind", "/tmp", "/tmp"]
    try:
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux") or not mounts(), reason="nothing can be mounted here")
def test_a_cache_that_is_mounted_read_only_is_used_without_a_word(tmp_path):
    cache = tmp_path / "cache"
    environment = {name: value for name, value in os.environ.items() if name != "GEMMA_JAX_COMPILE_CACHE"}
    environment["GEMMA_JAX_CACHE_DIR"] = str(cache)
    run = {"env": environment, "capture_output": True, "text": True, "timeout": 250}
    filled = subprocess.run([sys.executable, "-c", FILL], check=False, **run)
    assert filled.returncode == 0, filled.stderr
    before = facts(cache)
    assert any(name.endswith(".entry") for name in before)
    command = ["unshare", "-m", "sh", "-c", MOUNTED, str(cache), sys.executable, "-c", USE]
    used = subprocess.run(command, check=False, **run)
    assert used.stderr == ""
    assert json.loads(used.stdout) == [[True, False], [False, True]]
    assert facts(cache) == before
