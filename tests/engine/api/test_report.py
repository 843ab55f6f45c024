"""The report, as a table for people."""

from __future__ import annotations

import dataclasses

import pytest

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.metrics import ROWS, together


def report(**changes: object) -> Report:
    values: dict[str, object] = {field.name: 0 for field in dataclasses.fields(Report)}
    values |= {"kv_bytes_by_scope": {}, "guard_trips": {}, "models": (), "eviction_log": (), "routed": {}}
    values |= {"trips_by_app": {}, "series": {}, "by_model": {}, "latest_compiles": (), "rows": together((), ROWS)}
    return Report(**(values | changes))  # type: ignore[arg-type]


def test_the_first_token_is_told_of():
    assert "after 1.000 s, at most 9.000 s" in str(report(first_token_s=1.0, longest_first_token_s=9.0))


def test_shares_of_nothing_are_nothing():
    assert report().acceptance == 0.0
    assert report().host_share == 0.0


def test_shares():
    found = report(drafted_tokens=8, accepted_tokens=6, host_s=1.0, dispatch_s=2.0, device_s=1.0)
    assert found.acceptance == 0.75
    assert found.host_share == 0.25


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 2**30, "5.0 GiB"), (2**50, "1024.0 TiB")],
)
def test_sizes_are_readable(count, shown):
    assert f"KV                {shown} of" in str(report(kv_bytes=count)) or shown in str(report(kv_bytes=count))


def test_the_table_has_everything_that_happened():
    text = str(
        report(
            requests=7,
            failed=2,
            running=1,
            waiting=3,
            kv_bytes_by_scope={"b": 2048, "a": 1024},
            guard_trips={"recompile": 4},
            compiles=5,
            compile_s=1.25,
            cache_hits=6,
            cache_misses=8,
            cache_saved_s=9.75,
            routed={"heavy": 11},
            switches=2,
            escalations=1,
        )
    )
    assert "7 done, 2 of them failed, 1 run, 3 wait" in text
    assert text.index("scope 'a'") < text.index("scope 'b'")
    assert "guard recompile" in text
    assert "routed to heavy" in text
    assert "2 switches, 1 escalations" in text
    assert "4 trips" in text
    assert "5 in 1.2 s" in text
