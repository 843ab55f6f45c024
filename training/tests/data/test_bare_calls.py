"""Calls in bare tokens: everything in an answer was said, and the form is the dialect's."""

import pytest
import tokenizers

from training.data.bare_calls import bare_calls
from training.data.bare_tools import Marks
from training.parse import parse
from training.tokenizer import CONTROL

PLAIN = range(len(CONTROL), 4096)


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder):
    return tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def marks(tokenizer):
    return Marks.of(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def texts(marks):
    return [bare_calls(f"{number}", PLAIN, 2, marks) for number in range(100)]


def answers(text):
    """What is to be foreseen, one answer after another, each with where it begins."""
    start = None
    for place, follows in enumerate([*text.follows, False]):
        if follows and start is None:
            start = place
        elif not follows and start is not None:
            yield start, text.ids[start:place]
            start = None


def test_a_text_depends_on_its_seed_alone(marks, texts):
    assert bare_calls("7", PLAIN, 2, marks) == texts[7]
    assert texts[7] != texts[8]


def test_what_is_written_was_declared_or_said(marks, texts):
    form = set(marks.call + marks.open + marks.comma + marks.colon + marks.quote + marks.called)
    declined = called = 0
    for text in texts:
        for start, answer in answers(text):
            if answer == marks.decline:
                declined += 1
                continue
            called += 1
            assert set(answer) - form <= set(text.ids[:start])
    assert called > 5 * declined > 0


def test_a_value_stands_behind_its_key_or_before_it(marks, texts):
    """Where it was said before, the value and its key are the other way round in many a request."""

    def stands(ids, part):
        return any(ids[at : at + len(part)] == part for at in range(len(ids)))

    behind = before = 0
    for text in texts:
        for start, answer in answers(text):
            said = text.ids[:start]
            inner = answer[len(marks.call) : -len(marks.called)]
            for colon in (at for at, token in enumerate(inner) if [token] == marks.colon):
                key, value = inner[colon - 1 : colon], inner[colon + 2 : colon + 3]
                behind += any(stands(said, key + between + value) for between in marks.between)
                last = inner[inner.index(marks.quote[0], colon + 2) - 1 : inner.index(marks.quote[0], colon + 2)]
                before += any(stands(said, last + between) for between in marks.behind)
    assert behind > before > behind / 3


def test_an_answer_is_one_call(tokenizer, marks):
    ids = sorted(token for name, token in tokenizer.get_vocab().items() if name.isascii() and name.isalpha())
    for number in range(50):
        text = bare_calls(f"words/{number}", ids, 2, marks)
        for _, answer in answers(text):
            written = parse(tokenizer.decode(answer, skip_special_tokens=False))
            assert written.calls or written.text


def test_it_can_be_cut_behind_every_answer(texts, marks):
    for text in texts:
        assert text.ends[-1] == len(text.ids)
        for end in text.ends:
            assert text.ids[end - len(marks.close) : end] == marks.close
