"""How matrices in blocks are multiplied is measured once on a machine, and remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_gemma_jax.kernels.library import Kernels, kernels
from langchain_gemma_jax.models.packed import choose_forms
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms, measured
from langchain_gemma_jax.models.recipes.store import recipe_file
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForm, BlockForms

SUMS = BlockForms(BlockForm.SUMS, BlockForm.TILES, BlockForm.TILES)
KERNEL = BlockForms(BlockForm.KERNEL, BlockForm.KERNEL, BlockForm.TILES)
NEVER = float("inf")


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(choose_forms, "_chosen", {})
    monkeypatch.setattr(choose_forms, "SHAPE", (256, 256))


@pytest.mark.parametrize(
    ("kernel", "sums", "tiles", "found"),
    [
        (NEVER, 1, 2, SUMS),
        (NEVER, 9, 10, DEFAULT),
        (NEVER, 2, 1, DEFAULT),
        (1, 2, 4, KERNEL),
        (9, 10, 40, SUMS),
        (1, 4, 2, KERNEL),
    ],
)
def test_another_form_has_to_be_clearly_faster(kernel, sums, tiles, found):
    times = {BlockForm.KERNEL: kernel, BlockForm.SUMS: sums, BlockForm.TILES: tiles}
    assert measured(times) == found
    del times[BlockForm.KERNEL]
    assert measured(times) != KERNEL


def test_kernels_for_an_instruction_set_are_taken_and_portable_ones_measured(monkeypatch):
    for variant, result in {"amx": KERNEL, "avx2": KERNEL, "neon": KERNEL, "portable": SUMS}.items():
        choose_forms._chosen.clear()
        monkeypatch.setattr(choose_forms, "kernels", lambda variant=variant: Kernels(variant, ""))
        seconds = {BlockForm.SUMS: 1, BlockForm.TILES: 2}
        monkeypatch.setattr(choose_forms, "_seconds", lambda: seconds if result is SUMS else pytest.fail("measured"))  # noqa: B023
        assert replace(choose_block_forms(), activations="float32") == result


def test_what_was_measured_is_remembered(monkeypatch):
    monkeypatch.setattr(choose_forms, "kernels", lambda: Kernels(None, ""))
    monkeypatch.setattr(choose_forms, "_seconds", lambda: {BlockForm.SUMS: 1, BlockForm.TILES: 2})
    assert choose_block_forms() == SUMS
    monkeypatch.setattr(choose_forms, "_seconds", lambda: pytest.fail("measured again"))
    assert choose_block_forms() == SUMS
    choose_forms._chosen.clear()  # as in another process
    assert choose_block_forms() == SUMS
    for damaged in ("", "{}", '{"one_row": "quick"}'):
        recipe_file("blocks").write_text(damaged)
        choose_forms._chosen.clear()
        monkeypatch.setattr(choose_forms, "_seconds", lambda: {BlockForm.SUMS: 2, BlockForm.TILES: 1})
        assert choose_block_forms() == DEFAULT


def test_the_measurement_runs_here(monkeypatch):
    found = choose_forms._seconds()
    assert (BlockForm.KERNEL in found) is kernels().run
    assert all(0 < seconds < 60 for seconds in found.values())
    monkeypatch.setattr(choose_forms, "kernels", lambda: Kernels(None, ""))
    assert BlockForm.KERNEL not in choose_forms._seconds()


def test_accelerators_need_no_measurement(monkeypatch):
    monkeypatch.setattr(choose_forms.jax, "default_backend", lambda: "gpu")
    assert choose_block_forms() == choose_forms.ON_ACCELERATORS
