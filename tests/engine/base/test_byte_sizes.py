"""Bytes as people write them."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes, show_bytes
from langchain_gemma_jax.errors import InputError


@pytest.mark.parametrize(
    ("written", "means"),
    [
        (1, 1),
        ("1", 1),
        ("20GB", 20 * 10**9),
        (" 1.5 GiB ", 3 * 2**29),
        ("300mb", 3 * 10**8),
        ("2 kib", 2048),
        ("1TB", 10**12),
        ("8 B", 8),
    ],
)
def test_what_is_meant(written, means):
    assert parse_bytes("memory_budget", written) == means


@pytest.mark.parametrize("written", ["", "GB", "-1GB", "1e3", "1 XB", "1GBB", None, 1.0, True, 0, "0", "0.1B", 2**62])
def test_what_is_no_number_of_bytes_is_refused_by_name(written):
    with pytest.raises(InputError, match=r"^memory_budget: expected .* found"):
        parse_bytes("memory_budget", written)


def test_what_is_shown():
    assert [show_bytes(count) for count in (0, 1023, 1024, 3 * 2**29, 2**50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 GiB",
        "1024.0 TiB",
    ]
