"""Measurements that say nothing are no comparison."""

from __future__ import annotations

import dataclasses
import json

import pytest

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.verbs import bench
from langchain_gemma_jax.errors import InputError


def test_measurements_that_say_nothing_are_no_comparison(own, capsys):
    figure = {"name": "first token", "value": 1.0, "unit": "s", "better": "lower"}
    good = {"format": 1, "model": "m", "device": "d", "tokens": 2, "prompt": 2, "figures": [figure]}
    (own / "f.json").write_text(json.dumps(good))
    assert bench._read(own / "f.json") == good
    for wrong, words in (
        ({"figures": []}, "there is nothing in f.json to compare with"),
        ({"figures": [figure | {"name": "load"}]}, "there is nothing in f.json to compare with"),
        ({"figures": [figure | {"value": float("nan")}]}, "first token is nan"),
        ({"figures": [figure | {"value": -1}]}, "first token is -1"),
        ({"figures": 5}, "expected a file"),
        ({"format": 2}, "written by another version"),
    ):
        (own / "f.json").write_text(json.dumps(good | wrong))
        assert main(["bench", "--against", "f.json"]) == 2
        assert words in capsys.readouterr().err
    (own / "f.json").write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match="expected a file that --output wrote"):
        bench._read(own / "f.json")
    slower = dataclasses.asdict(bench.Figure("first token", 1.11, "s", "lower"))
    assert bench.compare(good, {"figures": [slower]}, 0.1) == ["first token"]
    assert bench.compare(good, {"figures": [slower]}, 0.12) == []
