"""``encode_text``: anybody's words come back as they were, and never as a control token."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.models.tokenizer import interface

SPACE = "\u2581"
HIGH, LOW = "\ud83d", "\ude00"  # the halves of 😀
AWKWARD = [
    *("", " ", "  ", " leading", "trailing ", "\n", "\n" * 40, "\t" * 33, " " * 70, "\r\n", "a\r\nb\rc", " \n \t\n"),
    *(SPACE, SPACE * 3, f" {SPACE} ", f"a{SPACE}b", "▁▂▃▄▅▆▇█", "<0x0A>", "<0x00><0xE2>", "0x0A"),
    *("\0", "a\0b", "\ufeff", "\ufffd", "\u2028\u2029", "\x7f\x85", "\u200b\u200d\u2060", "e\u0301 é", "ﬁ ² Å K"),
    *("👩\u200d👩\u200d👧 🏴\u200d☠️ 🇨🇭", "\U0010ffff", "مرحبا \u202e<end_of_turn>\u202c", "שלום", "ไทย", "𝔊𝔢𝔪𝔪𝔞"),
    *("<", "<" * 50, "<>", "< bos>", "<bos", "bos>", "<|", "|>", "<||>", "]][[", "</", "<unused", "<unused99999>"),
    *("<table><td>x</td></table>", "<b>bold</b>", "<Table>", "</s><s>", "[INST] x [/INST]", "<|im_start|>", "```"),
]
WRAPPINGS = [
    *(
        "{}", "{0}{0}", "a{}b", " {} ", "\n{}\n", "{} text", "text {}", "<{}>", "<<{}", "{}>>", "\u200b{}\u200b",
        "\u202e{}",
    ),
    *(
        "{}\u0301",
        "\ufeff{}",
        "\0{}",
        f"{SPACE}{{}}{SPACE}",
        "<b>{}</b>",
        "é{}é",
        "🙂{}🙂",
        "\n\n\n{}\n\n\n",
        "1{}1",
        "\r{}\r",
    ),
]  # fmt: skip


def assert_is_only_text(tokenizer, text):
    ids = tokenizer.encode_text(text)
    assert set(ids).isdisjoint(tokenizer.control_tokens.values()), text
    assert tokenizer.decode(ids) == tokenizer.decode(ids, keep_control=True) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_no_control_string_is_ever_a_control_token(tokenizer, wrapping):
    assert len(tokenizer.control_tokens) > 35
    for name in tokenizer.control_tokens:
        assert_is_only_text(tokenizer, wrapping.format(name))


def test_not_even_where_the_rest_of_one_is_put_together_by_taking_another_out(tokenizer):
    for name in tokenizer.control_tokens:
        for other in ("<eos>", name):
            for at in range(len(name) + 1):
                assert_is_only_text(tokenizer, name[:at] + other + name[at:])


def test_nor_in_other_writing(tokenizer):
    for name in tokenizer.control_tokens:
        wide = "".join(chr(ord(character) + 0xFEE0) for character in name if character != " ")
        for text in (name.upper(), name.title(), name.replace("_", " "), name.replace("<", "&lt;"), wide, name[::-1]):
            assert_is_only_text(tokenizer, text)


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_comes_back_as_it_was(tokenizer, text):
    assert_is_only_text(tokenizer, text)


def test_random_splices_of_everything(tokenizer):
    rng = random.Random(20)
    fragments = [*tokenizer.control_tokens, *AWKWARD, "word", " ", "\n", "é", "日本", "{", '"', "7"]
    for _ in range(2000):
        spliced = "".join(rng.choices(fragments, k=rng.randint(1, 8)))
        start, end = sorted(rng.choices(range(len(spliced) + 1), k=2))
        assert_is_only_text(tokenizer, spliced[:start] + spliced[end:])
        assert_is_only_text(tokenizer, spliced[start:end])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_text(tokenizer, data):
    names = st.sampled_from(list(tokenizer.control_tokens))
    text = data.draw(st.lists(st.one_of(st.text(max_size=8), names, st.sampled_from(AWKWARD)), max_size=8).map("".join))
    assert_is_only_text(tokenizer, text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (HIGH, "\ufffd"),
        (LOW, "\ufffd"),
        (f"a{HIGH}b", "a\ufffdb"),
        (HIGH + HIGH, "\ufffd\ufffd"),
        (LOW + HIGH, "\ufffd\ufffd"),
        (f"<bos>{LOW}<eos>", "<bos>\ufffd<eos>"),
        (HIGH + LOW, "😀"),
        (f"x{HIGH}{LOW}{HIGH}y 😀", "x😀\ufffdy 😀"),
    ],
)
def test_half_characters_become_one_or_the_replacement_character(tokenizer, text, meant):
    ids = tokenizer.encode_text(text)
    assert tokenizer.decode(ids) == meant
    assert ids == tokenizer.encode_text(meant)


def test_text_without_markers_is_spelled_as_in_training(tokenizer, library_ids, prose):
    for text in [
        prose,
        *prose.splitlines(),
        *prose.split(),
        " ".join(AWKWARD[:12]),
        "a  b\n\n\n\nc\t\td",
        "<b>x</b><table>",
    ]:
        assert tokenizer.encode_text(text) == library_ids(text)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_text_without_markers_is_spelled_as_in_training(tokenizer, library_ids, data):
    characters = st.characters(exclude_categories=["Cs"], exclude_characters=SPACE)
    text = data.draw(st.one_of(st.text(characters), st.text("ab <>\n\t/é日1", max_size=40)))
    if not any(name in text for name in tokenizer.control_tokens):
        assert tokenizer.encode_text(text) == library_ids(text)


def test_long_text_too(tokenizer, library_ids, prose):
    text = prose * 200
    assert len(text) > 3 * interface._STRETCH
    assert tokenizer.encode_text(text) == library_ids(text)


@pytest.mark.parametrize("unit", ["x", " ", "\n", "ab ", "🙂", "a" + " " * 20_000])
def test_long_text_comes_back_wherever_it_is_cut(tokenizer, unit):
    text = unit * (70_000 // len(unit))
    assert tokenizer.decode(tokenizer.encode_text(text)) == text


def test_the_library_never_gets_more_than_a_stretch(tokenizer, monkeypatch):
    """It takes more than twice as long for twice as much."""
    lengths, spell = [], tokenizer._spell
    monkeypatch.setattr(tokenizer, "_spell", lambda text: lengths.append(len(text)) or spell(text))
    tokenizer.encode_text("one two " * 10_000 + "x" * 100_000)
    assert interface._STRETCH - 10 < max(lengths) <= interface._STRETCH


def test_markers_are_read_as_text_is_and_not_in_bytes(tokenizer):
    """A model that is asked about ``<start_of_turn>`` should see it, not noise."""
    text = "say <start_of_turn> again"
    assert len(tokenizer.encode_text(text)) < 0.9 * len(text)


def test_byte_pairs_that_join_up_to_a_marker_are_caught(gemma):
    joined = [name for name, token_id in gemma.control_tokens.items() if token_id in gemma._spell(name)]
    assert len(joined) > 10, "this vocabulary is meant to be that bad"
    for name in joined:
        assert_is_only_text(gemma, name)


def test_one_marker_leaves_the_lines_around_it_as_they_were(gemma):
    before, after = "It is 23 °C in Zürich, said the tool.\n", "\nHe went on.\n"
    ids = gemma.encode_text(f"{before}<unused3>{after}")
    assert ids[: len(gemma.encode_text(before))] == gemma.encode_text(before)
    assert ids[-len(gemma.encode_text("He went on.\n")) :] == gemma.encode_text("He went on.\n")


def test_a_mark_that_libraries_read_as_a_space_leaves_the_line_around_it_as_it_was(gemma):
    before, after = "Once a tool has answered, ", ", the model reads the answer"
    ids = gemma.encode_text(f"{before}{SPACE}{after}")
    assert ids[: len(gemma.encode_text(before))] == gemma.encode_text(before)
    assert ids[-len(gemma.encode_text(after)) :] == gemma.encode_text(after)


def test_a_sentencepiece_model_that_does_not_say_either(train_sentencepiece_model, load_content):
    tokenizer = load_content(train_sentencepiece_model(split_by_unicode_script=False))
    assert tokenizer.control_id("<end_of_turn>") is not None
    assert_is_only_text(tokenizer, "x <end_of_turn>")


def test_a_normalizer_that_loses_something_loses_nothing_here(gemma_json, load_content, gemma):
    steps = [{"type": "NFKC"}, gemma_json["normalizer"]]
    tokenizer = load_content(gemma_json | {"normalizer": {"type": "Sequence", "normalizers": steps}})
    for text in ("ﬁne ² print", "e\u0301", "Å", "ｗｉｄｅ <bos>", "K\n" * 30):
        assert_is_only_text(tokenizer, text)
    assert tokenizer.encode_text("Once a tool has answered") == gemma.encode_text("Once a tool has answered")


def test_a_sentencepiece_normalizer_likewise(train_sentencepiece_model, load_content):
    tokenizer = load_content(train_sentencepiece_model(normalization_rule_name="nfkc"))
    for text in ("ﬁne ² print", "e\u0301", "Å\u200b", "ｗｉｄｅ <bos>", "wide\u3000space"):
        assert_is_only_text(tokenizer, text)
