"""The latest evictions, as people read them."""

from __future__ import annotations

from langchain_gemma_jax.engine.residency.eviction_log import KEPT, EvictionLog


def test_the_latest_are_kept_in_their_order_and_a_reader_has_his_own():
    log = EvictionLog()
    assert log.latest() == ()
    for number in range(KEPT + 3):
        log.add("./m", "weights", f"reason {number}", number, 0.5)
    seen = log.latest()
    log.add("./m", "weights", "another", 1, 0.5)
    assert [each.reason for each in seen] == [f"reason {number}" for number in range(3, KEPT + 3)]
    assert log.latest()[-1].reason == "another"


def test_an_eviction_is_one_line():
    log = EvictionLog()
    log.add("./m", "conversations to host memory", "room for ./n", 3 * 2**20, 0.0125)
    assert str(log.latest()[0]) == "./m: conversations to host memory, 3.0 MiB in 12.5 ms: room for ./n"
