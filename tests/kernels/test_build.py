"""Compiling the kernels: with what there is, and with a reason where there is nothing."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.kernels import build
from langchain_gemma_jax.kernels.build import (
    LIBRARY,
    NOTE,
    NotBuiltError,
    find_compiler,
    is_current,
    platform_tag,
    target_named,
)
from langchain_gemma_jax.kernels.library import FOLDER, checked, kernels

needs_them = pytest.mark.skipif(not kernels().run, reason=f"there was no compiler: {kernels().why}")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without a compiler, to whose PATH a test may add one."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    found = build.importlib.util.find_spec
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None if name == "ziglang" else found(name))

    def add(name: str, script: str) -> None:
        (path / name).write_text(f"#!/bin/sh\n{script}\n")
        (path / name).chmod(0o755)

    return add


def test_without_a_compiler_it_is_said_what_was_looked_for(bare, tmp_path):
    assert find_compiler() is None
    with pytest.raises(NotBuiltError, match=r"neither c\+\+, g\+\+ nor clang\+\+ on PATH, nor the package ziglang"):
        build.build(tmp_path / "lib")
    assert not (tmp_path / "lib").exists()


def test_a_name_on_the_path_that_does_not_run_is_passed_over(bare):
    bare("c++", "exit 1")
    bare("clang++", "echo clang version 99")
    assert find_compiler().name == "clang version 99"


def test_what_a_compiler_says_is_passed_on(bare, tmp_path):
    bare("c++", '[ "$1" = --version ] && echo "made up 1.0" || { echo "error: no such thing" >&2; exit 1; }')
    with pytest.raises(NotBuiltError, match=r"made up 1\.0 failed:\nerror: no such thing"):
        build.build(tmp_path / "lib")
    assert not (tmp_path / "lib").exists()


@needs_them
def test_the_library_here_is_that_of_these_sources(tmp_path, monkeypatch):
    assert is_current(FOLDER)
    assert not is_current(tmp_path)
    assert checked(FOLDER)["interface"] == list(build.OLDEST)
    monkeypatch.setattr(build, "sources_digest", lambda: "another")
    assert not is_current(FOLDER)


@needs_them
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the C++ library is the system's")
def test_the_library_shows_nothing_of_the_c_plus_plus_library_in_it():
    """Else numbers that other libraries of the process put into words come out empty, by which is loaded first."""
    loaded = ctypes.CDLL(str(FOLDER / LIBRARY))
    assert loaded.gemma_jax_attention
    for name in ("_ZNSt6locale7classicEv", "_ZNSt8ios_base4InitC1Ev", "_ZNSt12__basic_fileIcEC1EP15__pthread_mutex_t"):
        assert not hasattr(loaded, name), name


def test_a_wheel_says_for_which_machines_it_is(tmp_path):
    for wheel, tag in (("manylinux_2_17_x86_64", "manylinux_2_17_x86_64"), (None, "linux_x86_64")):
        (tmp_path / NOTE).write_text(json.dumps({"wheel": wheel}))
        assert platform_tag(tmp_path, "linux-x86_64") == tag


def test_for_other_machines_there_is_one_compiler_and_what_is_known_is_listed(bare, tmp_path):
    bare("c++", "echo made up 1.0")
    assert find_compiler().name == "made up 1.0"
    with pytest.raises(NotBuiltError, match="compiled by the package ziglang, which is not installed"):
        build.build(tmp_path / "lib", target=target_named("linux-aarch64"))
    with pytest.raises(NotBuiltError, match="one of linux-x86_64, linux-aarch64, macos-arm64, found 'vax'"):
        target_named("vax")


def test_a_compiler_that_does_not_know_the_newest_instructions_leaves_them_out(bare):
    known = ["portable", "avx2", "avx512"]
    for script, variants in (("exit 0", [*known, "amx"]), ('case "$*" in *-mamx*) exit 1;; esac', known)):
        bare("c++", script)
        assert build.variants_for("x86_64", build.Compiler(("c++",), "made up")) == variants
    assert "amx" not in build.variants_for("aarch64", build.Compiler(("c++",), "made up"))


@needs_them
def test_what_was_made_for_others_is_not_taken_for_this_machines(tmp_path):
    note = json.loads((FOLDER / NOTE).read_text())
    shutil.copytree(FOLDER, tmp_path / "lib")
    assert is_current(tmp_path / "lib")
    for changes in ({"machine": "vax"}, {"system": "plan9"}):
        (tmp_path / "lib" / NOTE).write_text(json.dumps(note | changes))
        assert not is_current(tmp_path / "lib")
    target = target_named("linux-x86_64")
    changes = {"machine": target.machine, "system": target.system, "wheel": None}
    (tmp_path / "lib" / NOTE).write_text(json.dumps(note | changes))
    assert not is_current(tmp_path / "lib", target), "a wheel for all machines needs what was compiled for all"
    (tmp_path / "lib" / NOTE).write_text(json.dumps(note | changes | {"wheel": target.wheel}))
    assert is_current(tmp_path / "lib", target)


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_them
def test_compiled_by_hand_it_is_what_runs_here(tmp_path):
    """A quarter of a minute. The variants are then looked at in a copy of what an installation would bring."""
    script = Path(build.__file__)
    subprocess.run([sys.executable, script, "--into", tmp_path / "lib"], check=True, capture_output=True)
    assert checked(tmp_path / "lib")["variants"] == checked(FOLDER)["variants"]
