from __future__ import annotations

from benchmarks.engine.engine_report import markdown
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures
from tests.benchmarks.engine.made_up_engine_run import made_up_engine_run, replay


def line(text, *begins):
    (found,) = [each for each in text.splitlines() if each.startswith("| " + " | ".join(begins) + " |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_every_engine_has_its_conversation():
    text = markdown(made_up_engine_run())
    assert line(text, OURS, "float32") == [OURS, "float32", "20.0 s", "–"]
    assert line(text, f"{OURS}, drafts", "float32")[2] == "25.0 s"
    assert line(text, TRANSFORMERS, "float32")[2:] == ["120.0 s", "480 of 480"]
    assert line(text, TRANSFORMERS, "bfloat16")[-1] == "–", "rounding decides there"


def test_each_turn_shows_what_it_added_and_what_was_there():
    turns = [each for each in markdown(made_up_engine_run()).splitlines() if each.startswith("| 3 | 200 |")]
    assert turns == ["| 3 | 200 | 916 | 200 (1.0) | 400 (2.0) | 400 (2.0) |"] * 2


def test_a_rival_that_is_absent_says_why_and_leaves_the_turns():
    run = made_up_engine_run()
    run.engines["float32"][LLAMA_CPP] = Figures(problem=".envs/llama is absent")
    text = markdown(run)
    assert line(text, LLAMA_CPP, "float32")[-1] == ".envs/llama is absent"
    assert "| 3 | 200 | 916 | 200 (1.0) | 400 (2.0) |\n" in text


def test_conversations_at_once_are_told_by_their_number():
    text = markdown(made_up_engine_run())
    assert line(text, "float32", "64") == [
        *("float32", "64"),
        *("64 (1.00 ×)", "128 (2.00 ×)", "160 (2.50 ×)", "256 (4.00 ×)"),
    ]


def test_drafts_are_told_with_their_acceptance_and_whether_the_answer_was_right():
    run = made_up_engine_run()
    run.engines["bfloat16"][OURS].rounds[0]["drafted replay"] = replay(speed=100, drafted=0, as_taught=7)
    text = markdown(run)
    assert line(text, "with drafts", "float32")[2:] == ["100", "1.50 s", "80 of 200 (40%)", "101 of 101"]
    assert line(text, "with drafts", "bfloat16")[-2:] == ["–", "7 of 101"]


def test_a_step_is_told_by_where_its_time_went():
    text = markdown(made_up_engine_run())
    assert line(text, "8", "float32")[2:] == ["20.00", "0.40", "5.00", "14.00", "2.00%", "1,024"]


def test_tokens_that_were_read_twice_are_counted():
    assert "float32: of what was said before, 9 tokens in ten turns were read again" in markdown(made_up_engine_run())


def test_nothing_measured_is_still_a_report():
    run = made_up_engine_run()
    run.engines.clear()
    assert "not measured: ours: not run" in markdown(run)
