from __future__ import annotations

import pytest

from benchmarks.running.bars import rows
from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures
from tests.benchmarks.running.made_up_run import engine, made_up_run


def verdicts(run, work, dtype="float32"):
    return [(row.beside, row.ratio, row.verdict) for row in rows(run) if (row.work, row.dtype) == (work, dtype)]


def test_every_bar_has_its_row_whatever_is_missing():
    full = [(row.work, row.dtype, row.bar) for row in rows(made_up_run())]
    empty = made_up_run()
    empty.engines.clear()
    empty.compilations.clear()
    assert [(row.work, row.dtype, row.bar) for row in rows(empty)] == full
    assert len(full) == 15
    assert all(row.verdict.startswith("not measured: ") for row in rows(empty))


def test_decoding_is_compared_with_memory_and_with_every_rival():
    # 40 tokens a second of 1 GB, at 50 GB/s; the rivals decode 25, 4 and 50.
    run = made_up_run()
    assert verdicts(run, "decode") == [
        ("bandwidth ÷ bytes: 50.0 tok/s", pytest.approx(0.8), "reached"),
        (f"{TRANSFORMERS}: 25.0 tok/s", pytest.approx(1.6), "**missed** by 20 %"),
        (f"{OFFICIAL}: 4.0 tok/s", pytest.approx(10), "reached"),
        (f"{LLAMA_CPP}: 50.0 tok/s", pytest.approx(0.8), "**missed** by 20 %"),
    ]


def test_reading_is_compared_with_the_faster_rival():
    assert verdicts(made_up_run(), "prefill of 256") == [
        (f"{LLAMA_CPP}: 2,560.0 tok/s", pytest.approx(0.4), "**missed** by 60 %")
    ]


def test_reading_without_the_faster_rival_says_so():
    run = made_up_run()
    run.engines["float32"][LLAMA_CPP] = Figures(problem="absent")
    (row,) = verdicts(run, "prefill of 256")
    assert row == (f"{TRANSFORMERS}: 1,024.0 tok/s", pytest.approx(1.0), f"reached (without {LLAMA_CPP})")


def test_a_narrow_miss_is_a_miss():
    run = made_up_run()
    run.engines["float32"][BANDWIDTH].rounds[:] = [{"numpy": 50.01e9}]
    assert verdicts(run, "decode")[0][2] == "**missed** by 1 %"


def test_an_absent_rival_keeps_its_row_and_its_reason():
    run = made_up_run()
    run.engines["float32"][OFFICIAL] = Figures(problem=".envs/gemma is absent")
    assert (OFFICIAL, None, f"not measured: {OFFICIAL}: .envs/gemma is absent") in verdicts(run, "decode")


def test_an_engine_that_failed_midway_is_not_judged_by_what_it_did():
    run = made_up_run()
    run.engines["float32"][OURS].problem = "out of memory"
    assert {verdict for _, _, verdict in verdicts(run, "decode")} == {"not measured: ours: out of memory"}


def test_the_median_of_the_rounds_counts():
    run = made_up_run()
    slow, fast = engine(decode=1000), engine(decode=1)
    run.engines["float32"][OURS].rounds += [*slow.rounds, *fast.rounds]
    assert verdicts(run, "decode")[0][1] == pytest.approx(0.8)


def test_compiling_is_held_to_seconds():
    (beside, ratio, verdict) = verdicts(made_up_run(), "compile, 18 layers")[0]
    assert (beside, ratio, verdict) == (f"{OFFICIAL}: 10.0 s", pytest.approx(2.0), "reached")
    (_, _, verdict) = verdicts(made_up_run(), "compile, 62 layers", "bfloat16")[0]
    assert verdict == "**missed** by 50 %"
