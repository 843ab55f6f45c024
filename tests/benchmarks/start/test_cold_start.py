"""The benchmark of fresh processes: what it runs, and what it says of it."""

from __future__ import annotations

import json

import pytest

from benchmarks.start import cold_start
from benchmarks.start.cold_process import prompt
from benchmarks.work.vocabulary import write_tokenizer
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.tiny_gemma import CONFIG, tiny_gemma


def kinds(warm):
    return {
        "floor": [{"import": 0.5}] * len(warm),
        "cold": [{"import": 0.6, "weights": 0.7, "first token": 5.0, "answer": 7.0}],
        "warm": [{"import": 0.6, "weights": 0.7, "first token": one, "answer": 1.0} for one in warm],
        "short": [{"import": 0.6, "weights": 0.7, "first token": one - 0.1, "answer": 1.0} for one in warm],
        "plain": [{"import": 0.6, "weights": 0.7, "first token": 3.0, "answer": 6.0}],
    }


def test_the_report_has_every_process_and_the_ratio_to_the_floor():
    text = cold_start.report({"sprout-m": kinds([0.7, 0.75, 0.8])}, "float32", 3, 0.1)
    assert "| ours, compiled before, 200 tokens | 0.60 | 0.70 | 0.75 | 1.00 | 1.50 |" in text
    assert "| ours, first ever, 200 tokens | 0.60 | 0.70 | 5.00 | 7.00 | 10.00 |" in text
    assert "| plain JAX, 200 tokens | 0.60 | 0.70 | 3.00 | 6.00 | 6.00 |" in text
    assert "| `import jax, langchain_core` | 0.50 |  |  |  |  |" in text
    assert "200 tokens, compiled before, round by round: 1.40, 1.50, 1.60. The bar is 1.5: reached." in text
    assert "16 tokens, compiled before, round by round: 1.20, 1.30, 1.40. The bar is 1.5: reached." in text


def test_a_bar_that_is_missed_is_said_so():
    assert "missed" in cold_start.report({"sprout-m": kinds([0.76])}, "float32", 1, None)


def test_an_unknown_model_is_refused(capsys):
    with pytest.raises(SystemExit):
        cold_start.main(["--models", "gemini"])
    assert "found gemini" in capsys.readouterr().err


def test_a_smaller_vocabulary_is_the_beginning_of_the_whole(tmp_path):
    write_tokenizer(tmp_path, size=400)
    assert load_tokenizer(tmp_path).vocab_size == 400


@pytest.mark.slow
def test_every_kind_of_process_gets_to_an_answer(tmp_path):
    files = tiny_gemma()
    config = CONFIG | {"max_position_embeddings": 64}
    for name, content in (files | {"config.json": json.dumps(config).encode()}).items():
        (tmp_path / name).write_bytes(content)
    stages = []
    for what in ("floor", "ours", "plain"):
        arguments = () if what == "floor" else (str(tmp_path), "float32", "20")
        times = cold_start.run(what, *arguments, cache=None, own=tmp_path)
        assert list(times.values()) == sorted(times.values())
        assert times["import"] > 0
        stages.append(tuple(times))
    assert stages == [("import",), cold_start.STAGES, cold_start.STAGES]
    assert max(prompt(cold_start.PROMPT)) < CONFIG["vocab_size"]
