"""A Gemma that is divided among devices gives what it gives on one, moves little, and lies on each in its part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.mesh.eight_devices import start
from tests.parity.tiny import ARCHITECTURES

SCRIPT = Path(__file__).parents[1] / "mesh" / "eight_devices.py"
FEW = ("gemma-4-e2b", "gemma-4-26b-a4b")  # shared KV and per-layer embeddings; experts, and one key that is the value

pytestmark = pytest.mark.timeout(1200)


def check(found):
    for name, seen in found.items():
        assert seen["apart"] < 2e-4, name
        assert all(seen["as alone"]), name
        assert set(seen["on each"]) == {seen["foretold"]}, name
        assert seen["foretold"] <= seen["documented"], name
        assert len(seen["on each"]) == int(name.rpartition(" on ")[2])
        assert len(set(seen["kv on each"])) == 1
        assert 0 < len(seen["told"]) <= 2, (name, seen["told"])
        assert all(re.fullmatch(r"\w+\[(\d?|1,\d)\]", shape) for shape in seen["told"])  # a number of each device
        for exchanged in seen["exchanged"]:
            assert exchanged.get("all-reduce", 0) <= 2 * seen["layers"] + 1, (name, exchanged)
            assert exchanged.get("all-to-all", 0) == exchanged.get("collective-permute", 0) == 0, (name, exchanged)


def check_dense(found):
    check(found)
    for seen in found.values():
        assert all(shape.endswith(f",{seen['vocabulary']}]") for shape in seen["gathered"])  # scores, and no weight
        assert len(seen["gathered"]) == len(seen["exchanged"])


@pytest.mark.long
def test_on_four_devices_two_kinds_of_model_give_what_they_give_on_one():
    check_dense(start(SCRIPT, {"counts": [4], "names": FEW, "storage": "dense"}))


@pytest.mark.long
def test_rounded_keys_and_values_are_divided_by_heads_as_others_are():
    """Each device rounds those of its own heads. A last bit decides between two codes, so scores differ by more."""
    found = start(SCRIPT, {"counts": [4], "names": FEW, "storage": "rounded cache"})
    for name, seen in found.items():
        assert seen["apart"] < 0.02, name
        assert all(seen["as alone"]), name
        assert set(seen["on each"]) == {seen["foretold"]}, name
        assert len(set(seen["kv on each"])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["dense", "inputs first"])
def test_every_architecture_on_two_four_and_eight_devices(storage):
    found = start(SCRIPT, {"counts": [2, 4, 8], "names": ARCHITECTURES, "storage": storage})
    assert len(found) == 3 * len(ARCHITECTURES)
    check_dense(found)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["int8", "int4"])
def test_packed_matrices_are_divided_where_a_block_ends(storage):
    found = start(SCRIPT, {"counts": [2, 4, 8], "names": ARCHITECTURES, "storage": storage})
    assert len(found) == 3 * len(ARCHITECTURES)
    check(found)
    for name, seen in found.items():
        # On eight devices a part of the feed-forward ends within a block: its second matrix is whole on each.
        assert seen["foretold"] < seen["alone"], name
