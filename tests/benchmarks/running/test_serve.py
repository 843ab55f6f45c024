from __future__ import annotations

import json
import os

import pytest

from benchmarks.running.serve import Job, keep_to, time_round, warm_up
from benchmarks.work.workload import CAPACITY, DECODE, LONG_PROMPT, PROMPT, READS, VOCABULARY, prompt_ids


class Counting:
    """An engine that notes what it is asked; its tokens are 0, 1, 2, ..."""

    def __init__(self, *lengths):
        self.facts = {}
        self.prompt_lengths = lengths
        self.asked = []
        self.next = 0

    def forget(self):
        self.asked.append("forget")

    def read(self, prompt):
        self.asked.append(len(prompt))
        self.next = 0
        return self._token()

    def decode(self, count):
        self.asked.append(f"decode {count}")
        return [self._token() for _ in range(count)]

    def _token(self):
        self.next += 1
        return self.next - 1


def test_a_round_times_every_prompt_and_one_decoding():
    round_ = time_round(Counting(LONG_PROMPT, PROMPT))
    assert {length: len(reads) for length, reads in round_["prefill"].items()} == {"512": READS, "256": READS}
    assert round_["tokens"] == list(range(DECODE))
    assert 0 < round_["decode"] < 1


def test_every_read_starts_afresh_and_decoding_follows_the_shorter_prompt():
    engine = Counting(LONG_PROMPT, PROMPT)
    time_round(engine)
    assert engine.asked[:2] == ["forget", PROMPT], "a read that is not timed comes first"
    assert engine.asked[::2][:-1] == ["forget"] * (1 + 2 * READS)
    assert engine.asked[-2:] == [PROMPT, f"decode {DECODE}"]


def test_decoding_behind_another_length_is_refused():
    with pytest.raises(ValueError, match="behind 256 tokens, and the last prompt has 512"):
        time_round(Counting(PROMPT, LONG_PROMPT))


def test_warming_up_runs_every_program_that_a_round_runs():
    warm, timed = Counting(LONG_PROMPT, PROMPT), Counting(LONG_PROMPT, PROMPT)
    warm_up(warm)
    time_round(timed)
    assert {str(each).split()[0] for each in warm.asked} == {str(each).split()[0] for each in timed.asked}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_a_process_keeps_to_its_cores():
    before = os.sched_getaffinity(0)
    try:
        keep_to(1)
        assert len(os.sched_getaffinity(0)) == 1
    finally:
        os.sched_setaffinity(0, before)


def test_a_job_survives_the_command_line():
    job = Job("bfloat16", threads=3, folder="/a b/c", model="gemma-3-1b")
    assert Job(**json.loads(job.to_json())) == job


def test_the_prompt_is_the_same_each_time_and_fits():
    ids = prompt_ids()
    assert ids == prompt_ids()
    assert len(ids) == LONG_PROMPT <= CAPACITY
    assert PROMPT + DECODE <= CAPACITY
    assert all(0 < token < VOCABULARY for token in ids), "0 is padding"
