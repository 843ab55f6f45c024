"""Words by what the whole of each is, and not by their pieces."""

import pytest
import tokenizers

from training.data.spelling import Spelling
from training.data.whole_words import whole_words


@pytest.fixture(scope="module")
def words(tokenizer_folder):
    """A function: of a text, the numbers of its words in order, and the texts of the tokens at which they stand."""
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab()

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    spelling = Spelling.of(sorted(vocabulary, key=vocabulary.__getitem__), encode)

    def found(text):
        ids = encode(text)
        numbers = whole_words(ids, spelling)
        return [number for number in numbers if number], [
            tokenizer.decode([token]) for token, number in zip(ids, numbers, strict=True) if number
        ]

    return found


def test_a_word_has_one_number_wherever_and_however_it_stands(words):
    once, _ = words("zeplooni")
    for text in ("a zeplooni.", "Zeplooni", "get_zeplooni", "getZeplooni", "GetZeplooni", "2 ZEPLOONI!"):
        numbers, _ = words(text)
        assert numbers[-1] == once[0]
    assert words("Get_Zeplooni")[0] == words("getZeplooni")[0] == words("get zeplooni")[0]


def test_it_stands_at_the_last_of_its_tokens(words):
    numbers, tokens = words("quorbeetle vrinbeetle")
    assert len(numbers) == len(set(numbers)) == 2
    assert all("quorbeetle vrinbeetle".count(token) == 2 for token in tokens)  # the same piece, in different words


def test_other_words_have_other_numbers_and_marks_have_none(words):
    names = [f"{first}{second}{third}" for first in "bdk" for second in ("ala", "eno", "iru") for third in "nts"]
    assert len(set(words(" ".join(names))[0])) == len(names)
    assert words("12, 34 -- ?")[0] == []
    assert all(0 < number < 1 << 30 for number in words("beetle Жтамич")[0])
