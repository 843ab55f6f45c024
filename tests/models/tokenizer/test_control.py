"""The rule that tells markers from text."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.tokenizer.control import HTML_TAGS, MARKERS, is_marker

ODD_MARKERS = [
    *(
        "<unused0>", "<unused6241>", "[multimodal]", "[toxicity=0]", "[@BOS@]", "<2mass>", "<ctrl99>",
        "<|new_in_gemma_9|>",
    ),
    *("<table >", "<tables>", "<//table>", "< table>", "<table", "table>", "<TABLE>", "<td/>", "<h7>", "<script>"),
    *("User:", "###", "</tool_call>", "<>", "--", " | ", "\u2581<eos>", "\u200b<eos>", "<eos> "),
]  # fmt: skip
TEXT = [
    *("\n\n", "\n" * 31, "\t\t", "  ", " " * 31, "\r\n", "\u3000\u3000", " \n"),
    *("<table>", "</table>", "<h6>", "</blockquote>", "<s>", "</s>", "<code>"),
    *("Zürich", "two words", "e\u0301clair", "日本語", "हिन्दी", "123", "<", "\u2581", "🙂"),
]


@pytest.mark.parametrize("text", [*sorted(MARKERS), *ODD_MARKERS])
def test_what_could_steer_a_model_is_a_marker(text):
    assert is_marker(text, special=False)


@pytest.mark.parametrize("text", TEXT)
def test_white_space_words_and_gemmas_html_tags_are_text(text):
    assert not is_marker(text, special=False)


@pytest.mark.parametrize("text", TEXT)
def test_what_the_file_calls_special_is_a_marker_whatever_it_looks_like(text):
    assert is_marker(text, special=True)


def test_no_marker_is_hidden_among_the_tags():
    assert not {f"<{slash}{tag}>" for tag in HTML_TAGS for slash in ("", "/")} & MARKERS
