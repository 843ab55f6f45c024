"""What a training process does with memory that it has freed."""

import subprocess
import sys

import pytest

from training import memory

_TOUCHED = """
import resource, sys
import numpy as np
from training.memory import keep_what_is_freed

def touched(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        np.ones(8_000_000)  # 64 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

kept = keep_what_is_freed() if sys.argv[1] == "kept" else None
touched(1)
print(kept, touched(10))
"""


def pages(how: str) -> tuple[str, int]:
    """Whether it was set to be kept, and the pages that had to be cleared for what was used over and over."""
    ran = subprocess.run([sys.executable, "-c", _TOUCHED, how], capture_output=True, text=True, check=True)
    kept, touched = ran.stdout.split()
    return kept, int(touched)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_what_is_freed_is_used_again_without_being_cleared():
    _, given_back = pages("given back")
    kept, again = pages("kept")
    if kept == "False":
        pytest.skip("the C library has no mallopt")
    assert again * 10 < given_back


def test_where_it_cannot_be_set_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert memory.keep_what_is_freed() is False


_BEGUN = """
import os, sys
from pathlib import Path
from training.memory import begin_anew_with_large_pages

print(os.getpid(), flush=True)
begin_anew_with_large_pages(Path(sys.argv[1]))
print(os.environ.get("GLIBC_TUNABLES"))
"""


def begun(setting, **environment):
    """How often a program began, and with what at last."""
    ran = subprocess.run(
        [sys.executable, "-c", _BEGUN, str(setting)], capture_output=True, text=True, check=True, env=environment
    )
    *numbers, tunables = ran.stdout.split()
    assert len(set(numbers)) == 1  # it stays the same process
    return len(numbers), tunables


def test_where_large_pages_are_asked_for_it_begins_anew_and_once(tmp_path):
    setting = tmp_path / "enabled"
    setting.write_text("always [madvise] never")
    assert begun(setting) == (2, "glibc.malloc.hugetlb=1")
    assert begun(setting, GLIBC_TUNABLES="glibc.malloc.check=0") == (2, "glibc.malloc.check=0:glibc.malloc.hugetlb=1")
    assert begun(setting, GLIBC_TUNABLES="glibc.malloc.hugetlb=1") == (1, "glibc.malloc.hugetlb=1")
    setting.write_text("[always] madvise never")
    assert begun(setting) == (1, "None")
    assert begun(tmp_path / "none") == (1, "None")
