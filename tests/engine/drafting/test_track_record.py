from __future__ import annotations

import doctest

from langchain_gemma_jax.engine.drafting import track_record
from langchain_gemma_jax.engine.drafting.track_record import TrackRecord


def after(drafts, record=None):
    record = record or TrackRecord()
    for proposed, expected, accepted in drafts:
        record.add(proposed, expected, accepted)
    return record.trust


def test_trust_follows_what_was_accepted():
    assert TrackRecord().trust == 1.0
    assert after([(7, 3.0, 3)] * 50) > 0.95
    assert after([(7, 3.0, 0)]) < 0.5
    assert after([(7, 3.0, 0)] * 20) < 0.2
    assert 1 < after([(7, 3.0, 7)] * 20) <= TrackRecord.MOST


def test_what_is_long_ago_is_forgotten():
    bad = [(7, 3.0, 0)] * 20
    assert after([*bad, *[(7, 3.0, 3)] * 40]) > 0.9
    assert after(bad, TrackRecord(2.0)) < 0.4


def test_a_start_without_trust_can_be_made_good():
    assert after([(3, 1.5, 3)] * 6, TrackRecord(0.1)) > 1


def test_the_examples_are_true():
    found = doctest.testmod(track_record)
    assert (found.failed, found.attempted > 2) == (0, True)
