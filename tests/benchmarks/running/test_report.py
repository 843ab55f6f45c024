from __future__ import annotations

import json

from benchmarks.running.figures import LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, agreeing
from benchmarks.running.report import markdown, table
from tests.benchmarks.running.made_up_run import made_up_run


def line(text, *begins):
    (found,) = [each for each in text.splitlines() if each.startswith("| " + " | ".join(begins))]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_every_engine_has_a_line_for_each_dtype():
    text = markdown(made_up_run())
    assert line(text, OURS, "float32")[2:] == ["1,024.0 (1,024.0)", "2,048.0 (2,048.0)", "40.0 (40.0)", "–"]
    assert line(text, OFFICIAL, "float32")[3] == "–", "which reads one length only"


def test_tokens_are_compared_in_float32():
    text = markdown(made_up_run())
    assert line(text, TRANSFORMERS, "float32")[-1] == "3 of 3"
    assert line(text, LLAMA_CPP, "float32")[-1] == "2 of 3"
    assert line(text, LLAMA_CPP, "bfloat16")[-1] == "–"


def test_tokens_agree_up_to_the_first_difference():
    assert agreeing([1, 2, 3, 4], [1, 9, 3, 4]) == 1
    assert agreeing([1, 2], [1, 2, 3]) == 2


def test_what_is_absent_says_why():
    run = made_up_run()
    run.engines["float32"][LLAMA_CPP] = Figures(problem=".envs/llama is absent")
    assert line(markdown(run), LLAMA_CPP, "float32")[-1] == ".envs/llama is absent"


def test_nothing_measured_is_still_a_report():
    run = made_up_run()
    run.engines.clear()
    run.compilations.clear()
    assert "not measured" in markdown(run)


def test_a_busy_machine_is_told():
    run = made_up_run()
    assert "busy" not in markdown(run)
    run.others = 0.02
    assert "busy" not in markdown(run)
    run.others = 0.7
    assert markdown(run).startswith("**The machine was busy**: others used 0.7 of its 2 cores")


def test_a_cell_cannot_end_its_row():
    assert table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


def test_a_run_can_be_written_as_json():
    found = json.loads(json.dumps(made_up_run().to_json()))
    assert found["engines"]["float32"][OURS]["rounds"][0]["tokens"] == [5, 6, 7]
