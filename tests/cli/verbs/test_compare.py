"""The cost of packing, measured on a text."""

from __future__ import annotations

import io
import json

import pytest

from langchain_gemma_jax.cli.command import main


@pytest.mark.slow
def test_what_packing_costs_is_measured_on_a_text(own, monkeypatch, capsys):
    (own / "page.txt").write_text("The weather in Oslo is sunny. " * 8)
    assert main(["compare", "sprout-s", "--text", "page.txt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    dense, eight, four = found["results"]
    assert [each["weights"] for each in found["results"]] == [None, "int8", "int4"]
    assert dense["tokens"] == four["tokens"] > 50
    assert dense["bytes"] > eight["bytes"] > four["bytes"]
    assert abs(eight["loss"] / dense["loss"] - 1) < 0.02
    assert eight["agreement"] > 0.9
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((own / "page.txt").read_bytes())))
    assert main(["compare", "sprout-s", "--weights", "int8", "--text", "-"]) == 0
    shown = capsys.readouterr().out
    assert f"{dense['tokens']:,} tokens" in shown
    assert "of the places" in shown
    assert "int4" not in shown
