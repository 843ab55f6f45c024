"""A model that is divided over two devices is served as one on a single device is, by the same engine and programs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.two_devices import start


@pytest.mark.long
def test_a_chunk_and_a_step_give_on_two_devices_what_they_give_on_one(tiny_folder):
    found = start(tiny_folder, "off", "single", "halves")
    single, halves = found["single"], found["halves"]
    assert single["divided"] == 0
    assert single["on each"] == [single["nbytes"]]
    assert halves["divided"] >= 1 + 4 * 2  # the embedding, and four matrices of each of two layers
    first, second = halves["on each"]
    assert first == second == halves["entry"] == halves["foretold"]  # the books hold what each device does
    assert first < 0.52 * halves["nbytes"] == 0.52 * single["entry"]
    assert (single["heads on each"], halves["heads on each"]) == (2, 1)
    assert halves["tokens"] == single["tokens"]
    assert halves["whole"] == [True] * len(single["whole"])
    for ours, theirs in zip(halves["numbers"], single["numbers"], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.slow
def test_whole_conversations_are_the_same_and_a_second_process_compiles_nothing(tiny_folder, tmp_path):
    tmp_path.chmod(0o700)
    names = ["single talk", "halves talk", "packed single talk", "packed halves talk"]
    found = start(tiny_folder, tmp_path / "programs", *names)
    for one, other in (names[:2], names[2:]):
        assert found[one]["said"] == found[other]["said"]
        for fact in ("reused", "evicted", "restored", "accepted"):
            assert found[one][fact] == found[other][fact]
        assert found[other]["evicted"] == found[other]["restored"] == 1
        assert found[other]["reused"] > 100
        assert min(found[one]["misses"], found[other]["misses"]) > 5  # no place takes another's programs
    assert found["halves talk"]["accepted"] > 0
    again = start(tiny_folder, tmp_path / "programs", "packed halves talk")["packed halves talk"]
    assert (again["misses"], again["said"]) == (0, found["packed halves talk"]["said"])
