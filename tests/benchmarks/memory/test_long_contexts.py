"""The benchmark of long contexts: what it asks of an engine, and its table."""

from __future__ import annotations

import itertools

from benchmarks.memory.long_contexts import BLOCK, LENGTHS, PAGE, markdown
from benchmarks.running.figures import Figures
from benchmarks.running.page import replace_block
from benchmarks.work.context_lengths import FEW, time_lengths


class Repeats:
    """An engine that says one token again and again, and keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def forget(self) -> None:
        self.asked.append(())

    def answer(self, context, count):
        self.asked.append(context)
        yield from [7] * count


def test_one_conversation_is_read_on_from_length_to_length():
    engine, text = Repeats(), [2, *range(10, 90)]
    found = time_lengths(engine, text, (30, 60, 200), lambda: len(engine.asked))
    begin, *contexts, end = engine.asked
    assert begin == end == ()
    assert [len(context) for context in contexts] == [30, 60, 200]
    for before, after in itertools.pairwise(contexts):
        assert after[: len(before) + FEW] == (*before, *[7] * FEW), "what was answered is a part of what comes next"
    assert list(found) == ["30", "60", "200"]
    assert [seen["held"] for seen in found.values()] == [2, 3, 4]
    reads = [seen["read"] for seen in found.values()]
    assert reads == sorted(reads), "from the beginning on"


def test_the_table_has_what_was_measured_and_says_what_was_not():
    seen = {"read": 2.0, "token": 0.05, "held": 5e6, "resident": 7e6}
    found = {"ours": Figures({"version": "1"}, [{"4096": seen}]), "theirs": Figures(problem="is absent")}
    text = markdown(found, [4096])
    assert "| 4,096 | ours | 2.0 s | 2,048 tokens | 50.0 ms | 5.0 MB | 7 MB |" in text
    assert "- theirs: is absent" in text


def test_the_page_has_a_place_for_it():
    assert replace_block(PAGE.read_text(), "new", BLOCK).count("new") >= 1
    assert LENGTHS[-1] == 131_072
