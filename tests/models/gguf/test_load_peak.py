"""The cost of loading a file: as much memory as its tensors and little more, no byte of which is moved twice."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.gguf.make import CONFIGS, layer, of_one_kind, small_tokenizer, write

MEASURE = """
    import json, sys
    from pathlib import Path

    from langchain_gemma_jax.models.loading.load import load
    from langchain_gemma_jax.private.freed_memory import give_back

    def resident(what):
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition(what)[2].split()[0])

    load(sys.argv[1], progress=False).close()  # what a process needs once, and what is remembered of this machine
    give_back()  # else the weights go to memory that the first load has freed
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = resident("VmRSS:")
    model = load(sys.argv[2], progress=False)
    print(json.dumps({"peak": resident("VmHWM:") - before, "weights": model.nbytes}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux counts the peak from a given moment")
@pytest.mark.parametrize("kind", ["Q4_K", "Q8_0"])
def test_the_peak_is_the_file_and_a_tenth(tmp_path, kind):
    """Of a model with one large table and many matrices, all of them packed."""
    large = replace(CONFIGS["gemma"], vocab_size=1 << 18, layers=(layer(kv_heads=1, ffw_width=1 << 13),) * 6)
    paths = [tmp_path / name for name in ("small.gguf", "large.gguf")]
    for path, config in zip(paths, (CONFIGS["gemma"], large), strict=True):
        write(path, config, of_one_kind(kind), tokenizer=small_tokenizer())
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), *map(str, paths)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert run.returncode == 0, run.stderr
    found, size = json.loads(run.stdout), paths[1].stat().st_size
    assert size > 50e6
    assert 0.95 * size < found["weights"] <= found["peak"] + (1 << 20)
    assert found["peak"] <= 1.1 * size, found
