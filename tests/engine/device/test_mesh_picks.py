"""Tokens that are picked from scores which lie on several devices are those that one device picks from all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.mesh.eight_devices import start

SCRIPT = Path(__file__).with_name("mesh_picks.py")
FEW = 129  # scores that a device tells the others, at most


def check(found):
    for count, seen in found.items():
        assert seen["picks"] > 100
        assert seen["wrong"] == 0, count
        assert seen["tops"] == 0, count
        assert seen["apart"] < 1e-4, count
        assert seen["moved"] <= FEW * int(count), "more than the few best of each were told"


@pytest.mark.long
def test_in_every_way_the_same_token_is_picked_from_shares_of_the_scores():
    check(start(SCRIPT, {"counts": [2, 8], "vocabulary": 320}))


@pytest.mark.slow
def test_so_it_is_where_the_best_are_found_by_blocks():
    check(start(SCRIPT, {"counts": [2, 4], "vocabulary": 2 * 16640}))
