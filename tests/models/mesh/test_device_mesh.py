"""Each of the devices that a model is divided among reads its own part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.mesh.eight_devices import start

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.long
def test_each_device_reads_its_own_slices_and_the_host_holds_one_at_a_time(tmp_path):
    found = start(Path(__file__).with_name("reading.py"), {"folder": str(tmp_path), "counts": [2, 4]})
    others = found.pop("other")
    assert len(others) == 9
    assert not any(others.values()), others
    for count, seen in found.items():
        assert seen["largest"] < seen["all"] / 2
        # A device's part of the largest array, and what a reader holds of the file.
        assert seen["peak"] < seen["largest"] / int(count) + (3 << 20), count
        # Two key heads on four devices are read twice, and nothing else is.
        assert seen["read"] < seen["all"] + seen["keys"] + (1 << 20), count
