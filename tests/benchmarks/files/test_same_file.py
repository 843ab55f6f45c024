from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks.files import same_file, same_file_bars, same_file_rivals
from benchmarks.files.random_files import SIZES, drawn, shapes_of
from benchmarks.files.same_file_bars import File, rows
from benchmarks.running.figures import BANDWIDTH, IK, LLAMA_AMX, LLAMA_CPP, MISTRAL_RS, ON_FILES, OURS, Figures, Run
from benchmarks.work.conversation import ANSWER

TALK = {"first": [0.1] * 10, "whole": [0.5] * 10, "tokens": [[1] * ANSWER] * 10}
SLOW = {"first": [0.2] * 10, "whole": [0.6] * 10, "tokens": [[1] * ANSWER] * 10}


def figures(seconds, talk):
    facts = {"version": "1", "weight_bytes": 1_040_000_000, "disk_bytes": 1_000_000_000, "page loss": 2.01,
             "exact loss": 2.0}  # fmt: skip
    prefill = {"256": [256 * seconds / 10], "512": [512 * seconds / 10]}
    long = {"prompt": 40 * seconds, "behind": 2 * seconds, "result": seconds}
    return Figures(facts, [{"prefill": prefill, "decode": seconds, "tokens": [1], "conversation": talk, "long": long}])


def run_of(label):
    memory = Figures({}, [{"numpy": 20e9, "XLA": 25e9}])
    engines = {OURS: figures(0.05, TALK), LLAMA_CPP: figures(0.06, SLOW), BANDWIDTH: memory}
    return Run({"cores": 2}, {}, {label: engines})


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (File("270M", "Q8_0"), {"decode": (1.2, "≥ 1.2 ×", True), "ten turns": (1.2, "≥ 1.3 ×", False)}),
        (
            File("270M", "F32"),
            {
                "decode": (1.2, "≥ 1 ×", True),
                "prefill of 512": (1.2, "≥ 1 ×", True),
                "prefill of 4,096": (1.2, "≥ 1 ×", True),
                "decode behind 16,384": (1.2, "≥ 1 ×", True),
                "first token behind a result of 50 and 2,000 before it": (1.2, "≥ 1 ×", True),
            },
        ),
        (
            File("1B", "Q4_0"),
            {
                "decode": (1.2, "≥ 1.1 ×", True),
                "loss on 512 tokens of text": (1.005, "≤ 1.005 ×", True),
                "decode, of the memory's speed": (0.8, "≥ 0.82 ×", False),
                "ten turns": (1.2, "≥ 1.1 ×", True),
                "first token behind 20 new ones": (2.0, "≥ 1 ×", True),
                "resident, of the file": (1.04, "≤ 1.05 ×", True),
            },
        ),
        (File("4B", "Q8_0", talks=False), {"decode, of the memory's speed": (0.8, "≥ 0.87 ×", False)}),
    ],
)
def test_bars_are_those_of_the_file(file, expected):
    found = {row.work: row for row in rows(run_of(file.label), {file.label: file})}
    assert ("ten turns" in found) == file.talks
    for work, (ratio, bar, reached) in expected.items():
        assert found[work].ratio == pytest.approx(ratio)
        assert (found[work].bar, found[work].verdict == "reached") == (bar, reached), work


def test_each_bar_is_beside_the_best_rival_that_did_the_work_and_a_crash_is_no_win():
    file = File("270M", "Q8_0")
    run = run_of(file.label)
    whole_answers = figures(0.04, TALK)
    del whole_answers.rounds[0]["conversation"], whole_answers.rounds[0]["long"]
    run.engines[file.label] |= {
        IK: figures(0.055, {**SLOW, "whole": [0.55] * 10}),
        MISTRAL_RS: whole_answers,
        LLAMA_AMX: Figures(problem="it ended (illegal instruction); see llama.log"),
    }
    found = {row.work: row for row in rows(run, {file.label: file})}
    assert found["decode"].beside == f"{MISTRAL_RS}: 25.0 tok/s"
    assert found["decode"].ratio == pytest.approx(0.8)
    assert found["ten turns"].beside.startswith(f"{IK}: 5.500 s")
    shown = same_file_rivals.markdown(run, [file.label]).splitlines()
    assert len(shown) == 2 + 1 + len(ON_FILES), "each rival has a row"
    (crashed,) = (line for line in shown if line.startswith(f"| {LLAMA_AMX} |"))
    assert "not measured: it ended (illegal instruction)" in crashed
    (without,) = (line for line in shown if line.startswith(f"| {MISTRAL_RS} |"))
    assert "| 25.0 | – | – | – |" in without

    for name in ON_FILES:
        run.engines[file.label][name] = Figures(problem="it fell over")
    alone = {row.work: row for row in rows(run, {file.label: file})}
    assert alone["decode"].verdict == f"not measured: {LLAMA_CPP}: it fell over"


def test_what_was_not_measured_keeps_its_rows_and_says_why():
    file = File("1B", "Q8_0")
    full = [(row.work, row.bar) for row in rows(run_of(file.label), {file.label: file})]
    empty = rows(Run({}, {}, {file.label: {OURS: Figures(problem="it fell over")}}), {file.label: file})
    assert [(row.work, row.bar) for row in empty] == full
    assert {row.verdict for row in empty} == {"not measured: ours: it fell over"}


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "BF16"])
def test_random_numbers_are_spread_as_asked(kind):
    stored = drawn(np.random.default_rng(0), (64, 256), kind, 0.05)
    if kind == "BF16":
        values = np.asarray(stored.view(ml_dtypes.bfloat16), np.float32)
    else:
        blocks = stored.reshape(64, 8, -1)
        scale = blocks[..., :2].copy().view(np.float16).astype(np.float32)
        whole = blocks[..., 2:]
        whole = (
            whole.view(np.int8) if kind == "Q8_0" else np.concatenate([whole & 15, whole >> 4], -1).astype(np.int8) - 8
        )
        values = (scale * whole).reshape(64, 256)
    assert values.shape == (64, 256)
    assert values.std() == pytest.approx(0.05, rel=0.05)


def test_the_shapes_are_those_that_were_published():
    from langchain_gemma_jax.models.configuration.catalog import published

    for size, fields in SIZES.items():
        shapes, config = dict(shapes_of(fields)), published(f"gemma-3-{size}")
        assert len({name.split(".")[1] for name in shapes if name.startswith("blk.")}) == len(config.layers)
        assert shapes["blk.0.ffn_up.weight"] == (config.layers[0].ffw_width, config.width)


def test_files_are_chosen_by_their_names_and_without_the_real_one_it_says_what_brings_it(monkeypatch, tmp_path, capsys):
    labels = [file.label for file in same_file.FILES]
    assert len(set(labels)) == len(labels)
    assert {"270M Q4_K_M", "1B BF16", "4B Q4_0"} <= set(labels)
    assert list(same_file.chosen_files("1b q4,4B Q8")) == ["1B Q4_0", "4B Q8_0"]
    assert list(same_file.chosen_files("")) == labels
    assert same_file.main(["--files", "270M Q9"]) == 2
    assert "270M Q4_K_M" in capsys.readouterr().err
    monkeypatch.setattr(same_file.real, "FOLDER", tmp_path)
    assert same_file.main(["--quick", "--files", "4B"]) == 1
    assert "scripts/real --fetch" in capsys.readouterr().err
    assert same_file_bars.SHORT_TURNS == [2, 4, 6, 8]
