from __future__ import annotations

import pytest

from benchmarks.engine.engine_bars import rows
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures
from tests.benchmarks.engine.made_up_engine_run import conversation, made_up_engine_run, our_round, replay

DRAFTS, HOST, COPIED = "a tool-calling turn with drafts", "the engine's own Python in a step", "copied to the device"


def judged(run, work, dtype="float32"):
    return [
        (row.ours, row.beside, row.ratio, row.verdict)
        for row in rows(run)
        if row.work.startswith(work) and row.dtype == dtype
    ]


def changed(**parts):
    run = made_up_engine_run()
    run.engines["float32"][OURS].rounds[:] = [our_round() | parts]
    return run


def test_every_bar_has_its_row_whatever_is_missing():
    full = [(row.work, row.dtype, row.bar) for row in rows(made_up_engine_run())]
    empty = made_up_engine_run()
    empty.engines.clear()
    assert [(row.work, row.dtype, row.bar) for row in rows(empty)] == full
    assert len(full) == 20
    assert all(row.verdict.startswith("not measured: ours: ") for row in rows(empty))


def test_the_conversation_is_compared_with_each_rival():
    assert judged(made_up_engine_run(), "ten turns") == [
        ("20.0 s", f"{TRANSFORMERS}: 120.0 s", pytest.approx(6), "reached"),
        ("20.0 s", f"{LLAMA_CPP}: 10.0 s", pytest.approx(0.5), "**missed** by 62 %"),
    ]


def test_an_absent_rival_takes_its_own_row_only():
    run = made_up_engine_run()
    run.engines["float32"][LLAMA_CPP] = Figures(problem="absent")
    first, second = judged(run, "ten turns")
    assert first[-1] == "reached"
    assert second[-1] == f"not measured: {LLAMA_CPP}: absent"
    assert judged(run, DRAFTS)[0][-1] == "reached"


def test_a_turn_may_cost_what_its_new_tokens_cost():
    same = [verdict for *_, verdict in judged(made_up_engine_run(), "first token")]
    assert same == ["reached"] * 3
    growing = conversation(per_new_token=0.001)
    growing["first"] = [seconds * (1 + turn / 10) for turn, seconds in enumerate(growing["first"])]
    run = changed(conversation=growing)
    assert judged(run, "first token of turn 10")[0] == (
        "1.90 ms of 60",
        "turn 1: 1.00 ms of 800",
        pytest.approx(1.9),
        "**missed** by 27 %",
    )


def test_what_happens_at_once_is_compared_with_one_after_another():
    assert judged(made_up_engine_run(), "8 conversations") == [
        ("256 tok/s", "one after another: 64 tok/s", pytest.approx(4), "reached")
    ]


def test_drafts_are_compared_with_none():
    assert judged(made_up_engine_run(), DRAFTS) == [("100 tok/s", "without: 50 tok/s", pytest.approx(2), "reached")]


@pytest.mark.parametrize("which", ["replay", "drafted replay"])
def test_drafts_of_another_answer_are_no_result(which):
    run = changed(**{which: replay(speed=500, as_taught=90)})
    (row,) = judged(run, DRAFTS)
    assert row == ("–", "–", None, "not measured: the answer differs from what was taught in 11 of 101 tokens")


@pytest.mark.parametrize(("host", "verdict"), [(0.06, "reached"), (0.066, "**missed** by 10 %")])
def test_the_engines_own_time_is_a_share_of_the_step(host, verdict):
    step = our_round()["steps"]["1"] | {"host": host}
    run = changed(steps={"1": step, "8": step | {"host": 2.0}})
    assert judged(run, HOST)[0][1:] == ("a step: 20.0 ms", None, verdict)


@pytest.mark.parametrize(("size", "verdict"), [(64 * 1024, "reached"), (128 * 1024, "**missed** by 100 %")])
def test_bytes_are_counted_for_each_step(size, verdict):
    run = changed(steps={"1": our_round()["steps"]["1"] | {"bytes": 100 * size}})
    assert judged(run, COPIED)[0] == (f"{size / 1024:.2f} KiB", "–", None, verdict)


def test_one_program_compiled_in_any_round_is_a_miss():
    assert judged(made_up_engine_run(), "programs")[0][-1] == "reached"
    run = made_up_engine_run()
    run.engines["float32"][OURS].rounds.append(our_round() | {"compiles": 1})
    assert judged(run, "programs")[0][-1].startswith("**missed**")


def test_the_median_of_the_rounds_counts():
    run = made_up_engine_run()
    rounds = run.engines["float32"][OURS].rounds
    rounds += [our_round() | {"conversation": conversation(per_new_token=0.001, whole=each)} for each in (1.0, 100.0)]
    assert judged(run, "ten turns")[0][0] == "20.0 s"
