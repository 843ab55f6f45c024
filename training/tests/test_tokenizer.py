import pytest

from langchain_gemma_jax.models.tokenizer import load_tokenizer
from training import tokenizer

TEXTS = (
    "你好啊集团",
    "こんにちは 株式会社",
    "Наталья Шевченко",
    "مريم حسن",
    "Þóra Ødegaard-Łukasz",
    "अनीता வணக்கம் ไทย",
    "😀🎉 emoji",
    '{"dueDate": "2031-02-07", "n": -12.50}',
    "HTTPServer get_user_id kebab-case\n\n\tx   y",
    "\x00\x7f\u2028",
)


@pytest.fixture(scope="module")
def ours(tokenizer_folder):
    return load_tokenizer(tokenizer_folder)


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(ours, tokenizer_folder, text):
    library = tokenizer.load(tokenizer_folder)
    assert ours.encode_text(text) == library.encode(text, add_special_tokens=False).ids
    assert ours.decode(ours.encode_text(text)) == text


def test_control_tokens_have_gemmas_names_and_first_ids(ours):
    assert [ours.control_id(name) for name in tokenizer.CONTROL] == list(range(16))
    assert ours.eos_ids == (1, 5)
    assert ours.vocab_size == tokenizer.VOCABULARY


def test_a_word_has_the_same_tokens_wherever_it_stands(ours):
    alone = ours.encode_text("zorvelquist")
    for before, after in ((" ", " "), ('"', '",'), ("_", "_"), ("\n", "."), ("1", "2"), ("(", ")")):
        ids = ours.encode_text(before + "zorvelquist" + after)
        assert any(ids[i : i + len(alone)] == alone for i in range(len(ids)))


def test_digits_stand_alone(ours):
    assert len(ours.encode_text("12345.678")) == 9


def test_letters_of_other_scripts_are_single_tokens_and_characters_of_many_are_two(ours):
    assert len(ours.encode_text("Наталья")) == 7
    assert len(ours.encode_text("مريم")) == 4
    assert len(ours.encode_text("你好集团")) == 8
    assert len(ours.encode_text("한빛")) == 4


def test_the_same_seed_gives_the_same_tokenizer():
    first, second = (tokenizer.build(conversations=20, vocabulary=1800).to_str() for _ in range(2))
    assert first == second
