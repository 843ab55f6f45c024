"""Encoding costs in proportion to the text, whoever wrote it. And any number of threads may do it at once."""

from __future__ import annotations

import sys
import threading

import pytest

from tests.counted import growth

SHORT = 1 << 12
TEXTS = {
    "prose": ("It is 23 °C in Zürich, said the tool.\n", 1),
    "spaces": (" ", 1),
    "angle brackets": ("<", 1),
    "one word": ("abcdefg", 1),
    "markers": ("<start_of_turn>", 2),
    "what looks like spaces": ("\u2581a", 8),
    "half markers": ("<unused", 1),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_eight_times_the_text_costs_no_sixteen_times_as_much(tokenizer, kind):
    unit, slowness = TEXTS[kind]
    text = unit * (2 * SHORT // slowness // len(unit))
    short = text[: len(text) // 8]
    assert growth(lambda: tokenizer.encode_text(short), lambda: tokenizer.encode_text(text)) < 16


def test_threads_do_not_disturb_each_other(tokenizer, prose):
    texts = [f"{prose[start : start + 60]}<bos>\u2581{start}" for start in range(0, 400, 10)]
    expected = [(tokenizer.encode_text(text), tokenizer.encode_scaffold(text)) for text in texts]
    start, wrong = threading.Barrier(8), []

    def work():
        start.wait()
        for text, ids in zip(texts, expected, strict=True):
            if (tokenizer.encode_text(text), tokenizer.encode_scaffold(text)) != ids:
                wrong.append(text)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
