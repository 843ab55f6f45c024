"""The report of what adapters cost, and the adapters that it is about."""

from __future__ import annotations

from benchmarks.engine import adapters
from benchmarks.running.page import replace_block
from langchain_gemma_jax import engine


def test_medians_stand_beside_those_without_adapters():
    text = adapters.report({"m": {0: [0.01, 0.02, 9.0], 1: [0.03], 4: [0.04]}}, 16, 0.1, "Provisional.")
    assert "| m | none | 20.00 | 400 | 1.00 × |" in text
    assert "| m | 4 | 40.00 | 200 | 2.00 × |" in text
    assert text.partition("\n")[0].endswith("medians of 3 rounds. Others used 0.10 cores meanwhile. Provisional.")


def test_random_adapters_change_every_projection():
    served = engine().load("sprout-s")
    one, other = (adapters.made_up(served, 3, seed) for seed in (0, 1))
    assert one.digest != other.digest
    assert one.rank == 3
    layers = served.model.architecture.adapted_layers
    assert len(one.matrices) == sum(len(matrix.parts) for layer in layers for matrix in layer.matrices.values())


def test_the_page_has_its_place():
    page = adapters.PAGE.read_text()
    assert replace_block(page, "new", adapters.BLOCK) != page
