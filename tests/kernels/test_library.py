"""The library is loaded whole or not at all, and whoever asks hears why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.kernels import library
from langchain_gemma_jax.kernels.build import LIBRARY, NOTE
from langchain_gemma_jax.kernels.library import FOLDER, Kernels, in_words, kernels

ROOT = Path(__file__).parents[2]
RUNS = kernels().run
needs_them = pytest.mark.skipif(not RUNS, reason=f"there was no compiler: {kernels().why}")


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The library in a folder of its own; XLA is not told of it a second time."""
    monkeypatch.setattr(library, "_register", lambda _: None)
    shutil.copytree(FOLDER, tmp_path / "lib")
    return tmp_path / "lib"


def note(folder: Path, **changes: object) -> None:
    found = json.loads((folder / NOTE).read_text())
    (folder / NOTE).write_text(json.dumps(found | changes))


@needs_them
def test_a_library_as_it_was_compiled_runs(copy):
    found = library._load("auto", copy)
    assert found.run
    assert found.variant in str(found)
    assert "compiled by" in str(found)


def damaged(folder: Path) -> None:
    content = bytearray((folder / LIBRARY).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / LIBRARY).write_bytes(content)


@needs_them
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (damaged, "its digest is another"),
        (lambda folder: (folder / LIBRARY).write_bytes(b"\x7fELF"), "its digest is another"),
        (lambda folder: (folder / NOTE).unlink(), "were not compiled"),
        (lambda folder: (folder / LIBRARY).unlink(), "were not compiled"),
        (lambda folder: (folder / NOTE).write_text("{"), "cannot be read"),
        (lambda folder: (folder / NOTE).write_text("[]"), "were not compiled"),
        (lambda folder: (folder / NOTE).write_text('{"why": "there was no compiler"}'), "there was no compiler"),
        (lambda folder: note(folder, sources="0"), "from other sources"),
        (lambda folder: note(folder, machine="vax"), "compiled for vax"),
        (lambda folder: note(folder, interface=[0, 99]), "version [0, 99] of XLA's interface"),
        (lambda folder: note(folder, interface=[1, 0]), "version [1, 0] of XLA's interface"),
        (lambda folder: note(folder, interface=None), "version None of XLA's interface"),
    ],
)
def test_any_other_file_is_refused_before_it_is_loaded(copy, monkeypatch, change, why):
    monkeypatch.setattr(library.ctypes, "CDLL", lambda path: pytest.fail(f"{path} was loaded"))
    change(copy)
    found = library._load("auto", copy)
    assert not found.run
    assert why in found.why
    with pytest.raises(InputError, match="GEMMA_JAX_KERNELS=portable: the kernels cannot be used here"):
        library._load("portable", copy)


@needs_them
def test_a_library_that_lacks_a_target_is_not_known_by_half(monkeypatch):
    import jax

    told = []
    monkeypatch.setattr(jax.ffi, "register_ffi_target", lambda name, *_, **__: told.append(name))
    monkeypatch.setattr(library, "KINDS", (*library.KINDS, "Q9_9"))
    assert "Q9_9" in library._load("auto", FOLDER).why
    assert told == []


@needs_them
def test_an_instruction_set_that_is_not_there_is_never_chosen(copy, monkeypatch):
    class Elsewhere:
        """The library on a processor that has nothing, or everything."""

        chosen, has = b"", (b"portable",)

        def gemma_jax_runs(self, name: bytes) -> int:
            return 0 if name in self.has else 2

        def gemma_jax_choose(self, name: bytes) -> int:
            self.chosen = name
            return self.gemma_jax_runs(name)

    elsewhere = Elsewhere()
    monkeypatch.setattr(library.ctypes, "CDLL", lambda _: elsewhere)
    assert library._load("auto", copy).variant == "portable"
    assert elsewhere.chosen == b"portable"
    with pytest.raises(InputError, match=r"no such instructions.*What runs here: portable, auto, off"):
        library._load("avx2", copy)
    elsewhere.has = (b"portable", b"avx2", b"avx512")
    assert library._load("auto", copy).variant == "avx512"
    assert library._load("avx2", copy).variant == "avx2"
    elsewhere.has = (b"portable", b"avx2", b"avx512", b"amx")
    assert library._load("auto", copy).variant == "amx"


def test_what_is_asked_for_has_to_be_known(monkeypatch):
    monkeypatch.setattr(library, "_known", None)
    monkeypatch.setenv("GEMMA_JAX_KERNELS", "sse9")
    with pytest.raises(
        InputError, match="expected one of auto, off, portable, avx2, avx512, amx, neon, dotprod, i8mm, found 'sse9'"
    ):
        kernels()
    assert "found 'sse9'" in in_words()
    monkeypatch.setenv("GEMMA_JAX_KERNELS", "off")
    assert str(kernels()) == "off: GEMMA_JAX_KERNELS=off"
    assert kernels().identity == kernels().targets == "no kernels"


def test_measurements_depend_on_the_library_and_programs_on_its_interface():
    one, other = Kernels("avx2", "", "1"), Kernels("portable", "", "2")
    assert one.identity != other.identity
    assert one.targets == other.targets != Kernels(None, "").targets


PROGRAM = """
import jax.numpy as jnp
from langchain_gemma_jax.kernels.library import in_words, kernels
from langchain_gemma_jax.models.recipes.choose import choose_recipe
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.weights import Form, Plan
by_kernel = Plan(one_row=Form.KERNEL, few_rows=Form.KERNEL)
print(kernels().variant, float(linear(jnp.ones((2, 640)), jnp.ones((3, 640)), by_kernel)[1, 2]), in_words())
"""


@pytest.mark.long
@pytest.mark.parametrize("wanted", ["off", "portable", "auto"])
def test_the_environment_says_what_runs(wanted, tmp_path):
    if wanted == "portable" and not RUNS:
        pytest.skip("there was no compiler")
    environment = os.environ | {"GEMMA_JAX_KERNELS": wanted, "GEMMA_JAX_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    variant, value, words = ended.stdout.strip().split(" ", 2)
    assert float(value) == 640.0
    assert (variant == "None") is (wanted == "off" or not RUNS)
    assert words.startswith("off: " if variant == "None" else f"{variant}: ")
