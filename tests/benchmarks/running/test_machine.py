from __future__ import annotations

import os

import pytest

from benchmarks.running.machine import Others, busy_seconds, cores, machine, processor, processor_class

STAT = "cpu  100 20 30 9000 500 4 6 40 7 8\ncpu0 50 10 15 4500 250 2 3 20 3 4\n"


def test_waiting_is_not_being_busy():
    assert busy_seconds(STAT, ticks=100) == pytest.approx((100 + 20 + 30 + 4 + 6 + 40) / 100)


@pytest.mark.parametrize("stat", ["", "intr 1 2 3", "cpu 1 2 3"])
def test_a_system_that_does_not_tell_is_no_error(stat):
    assert busy_seconds(stat, ticks=100) is None


def test_own_work_is_not_others(monkeypatch):
    spent = os.times()
    monkeypatch.setattr(os, "times", lambda: (1.0, 0.5, 0.25, 0.25, spent.elapsed))
    monkeypatch.setattr("benchmarks.running.machine._read", lambda path: STAT)
    _, seconds = Others._now()
    assert seconds == pytest.approx(busy_seconds(STAT, os.sysconf("SC_CLK_TCK")) - 2)


def test_what_others_use_is_an_average(monkeypatch):
    others = Others()
    monkeypatch.setattr(others, "_then", (0.0, 10.0))
    monkeypatch.setattr(others, "_now", lambda: (20.0, 25.0))
    assert others.cores_used() == pytest.approx(0.75)
    monkeypatch.setattr(others, "_now", lambda: None)
    assert others.cores_used() is None


def test_a_processor_is_named_with_what_multiplies():
    text = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu avx2 avx512f ss\n\nprocessor\t: 1\n"
    assert processor(text) == "AMD EPYC (avx2, avx512f)"


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("flags : avx2 avx512f avx512_vnni amx_int8", "AMX"),
        ("flags : avx2 avx512f avx512_vnni", "AVX-512"),
        ("flags : avx2 avx512f", "AVX2"),
        ("Features : fp asimd asimddp", "NEON"),
        ("", "riscv64"),
    ],
)
def test_a_processor_has_the_class_of_its_widest_products(flags, found):
    assert processor_class(flags, "riscv64") == found


def test_this_machine_has_facts():
    found = machine()
    assert found["class"]
    assert found["cores"] == cores() >= 1
    assert found["memory_bytes"] > 2**28
