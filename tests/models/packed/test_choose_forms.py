"""How matrices in blocks are multiplied is measured once on a machine, and remembered."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.packed import choose_forms
from langchain_gemma_jax.models.packed.blocks import DEFAULT, BlockForm, BlockForms
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms, measured
from langchain_gemma_jax.models.recipes.store import recipe_file

SUMS = BlockForms(BlockForm.SUMS, BlockForm.TILES, BlockForm.TILES)


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(choose_forms, "_chosen", {})
    monkeypatch.setattr(choose_forms, "SHAPE", (256, 256))


@pytest.mark.parametrize(("sums", "tiles", "found"), [(1, 2, SUMS), (9, 10, DEFAULT), (2, 1, DEFAULT)])
def test_another_form_has_to_be_clearly_faster(sums, tiles, found):
    assert measured({BlockForm.SUMS: sums, BlockForm.TILES: tiles}.__getitem__) == found


def test_what_was_measured_is_remembered(monkeypatch):
    monkeypatch.setattr(choose_forms, "_time_of", {BlockForm.SUMS: 1, BlockForm.TILES: 2}.__getitem__)
    assert choose_block_forms() == SUMS
    monkeypatch.setattr(choose_forms, "_time_of", lambda _: pytest.fail("measured again"))
    assert choose_block_forms() == SUMS
    choose_forms._chosen.clear()  # as in another process
    assert choose_block_forms() == SUMS
    for damaged in ("", "{}", '{"one_row": "quick"}'):
        recipe_file("blocks").write_text(damaged)
        choose_forms._chosen.clear()
        monkeypatch.setattr(choose_forms, "_time_of", {BlockForm.SUMS: 2, BlockForm.TILES: 1}.__getitem__)
        assert choose_block_forms() == DEFAULT


def test_the_measurement_runs_here():
    assert 0 < choose_forms._time_of(BlockForm.TILES) < 60


def test_accelerators_need_no_measurement(monkeypatch):
    monkeypatch.setattr(choose_forms.jax, "default_backend", lambda: "gpu")
    assert choose_block_forms() == choose_forms.ON_ACCELERATORS
