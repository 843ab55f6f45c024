"""The table of tests for GPUs and TPUs: its files are there, and each area has tests that no marker leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.device_tests import AREAS, FILES

TESTS = Path(__file__).parent


def test_each_file_is_there_once():
    assert all((TESTS / file).is_file() for file in FILES)
    assert len(FILES) == sum(map(len, AREAS.values()))


def test_tests_of_these_files_and_no_others_are_marked(request):
    marked = {
        Path(item.path).relative_to(TESTS).as_posix()
        for item in request.session.items
        if item.get_closest_marker("device")
    }
    assert marked <= FILES
    run = {
        Path(item.path).relative_to(TESTS).as_posix() for item in request.session.items if TESTS in item.path.parents
    }
    assert marked == FILES & run


def test_the_command_of_the_makefile_takes_the_marker():
    makefile = (TESTS.parent / "Makefile").read_text()
    target = makefile.partition("\ntest-device:")[2].partition("\n\n")[0]
    assert '-m "device and not slow"' in target
    assert "JAX_PLATFORMS" in target
    assert pytest.mark.device
