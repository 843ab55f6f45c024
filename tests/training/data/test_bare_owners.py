"""What is to be foreseen about words and arguments was declared."""

import pytest
import tokenizers

from training.data.bare_owners import bare_owners, bare_words
from training.data.bare_tools import Marks
from training.tokenizer import CONTROL

PLAIN = range(len(CONTROL), 4096)


@pytest.fixture(scope="module")
def marks(tokenizer_folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    return Marks.of(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def test_a_text_depends_on_its_seed_alone(marks):
    assert bare_owners("7", PLAIN, 2, marks) == bare_owners("7", PLAIN, 2, marks)
    assert bare_owners("7", PLAIN, 2, marks) != bare_owners("8", PLAIN, 2, marks)


def test_every_word_of_one_tool_alone_comes_with_its_name(marks):
    asked = 0
    for number in range(50):
        text = bare_words(f"{number}", PLAIN, 2, marks)
        declaration = text.ids[: text.ends[0]]
        for start, end in zip(text.ends, text.ends[1:], strict=False):
            word, *name = text.ids[start:end]
            assert word in declaration
            assert text.follows[start:end] == [False] + [True] * len(name)
            assert set(name) <= set(declaration)
            asked += 1
    assert asked > 200


def test_names_and_arguments_were_declared_and_values_are_not_asked_for(marks):
    form = set(marks.comma + marks.called)
    asked = 0
    for number in range(100):
        text = bare_owners(f"{number}", PLAIN, 2, marks)
        assert text.ends[-1] == len(text.ids) == len(text.follows)
        declared = set(text.ids[: text.ends[0]])
        assert not any(text.follows[: text.ends[0]])
        wanted = {token for token, follows in zip(text.ids, text.follows, strict=True) if follows}
        assert wanted <= declared | form
        asked += len(wanted - form)
    assert asked > 500


def test_a_word_is_followed_by_the_name_of_its_tool(marks):
    text = bare_owners("1", PLAIN, 2, marks)
    said = [text.ids[start:end] for start, end in zip(text.ends, text.ends[1:], strict=False)]
    words = [part for part in said if part[0] not in marks.call]
    assert words
    for word, *name in words:
        declaration = text.ids[: text.ids.index(word)]
        begins = max(
            place
            for place in range(len(declaration))
            if declaration[place : place + len(marks.declare)] == marks.declare
        )
        owner = declaration[begins + len(marks.declare) :]
        assert owner[: len(name) - 1] == name[:-1]
