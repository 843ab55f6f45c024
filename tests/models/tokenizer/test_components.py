"""The limits of a ``tokenizer.json``: it asks the library for nothing that takes long, and nothing that grows."""

from __future__ import annotations

import json

import pytest
import tokenizers
from tokenizers import pre_tokenizers

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED, embedded_folder
from langchain_gemma_jax.models.tokenizer import hf_json
from langchain_gemma_jax.models.tokenizer.components import check_components, is_linear

# As byte-level tokenizers in use split a text. Gemma's own have no regular expression.
IN_USE = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\d+|[a-z]+|.",
]
HOSTILE = [
    *("(a+)+$", "(a|a)*b", "(a|aa)+$", "a+b", "a*a*a*b", r"(.*)*\1x", "(?=(a+))b", "(?<=a+)b", "a+(?![ab])"),
    *("((a{99}){99}){99}", "a{1,9999}", r"\s*[\r\n]+", "a++b", "a+?b", "a(?:b)", "^a", "a$", "a||b", "", "|", "a|"),
    *(r"\Ra", r"\X", r"\K", r"\g<1>", r"\k<a>", "(?R)", "[a[b]]", "[[:alpha:]&&[^a]]", "(?#x)", "(?x) a", "a" * 3000),
]


def test_what_is_in_use_is_let_through():
    for pattern in IN_USE:
        assert is_linear(pattern), pattern
    for name in EMBEDDED:
        check_components(embedded_folder(name), (embedded_folder(name) / "tokenizer.json").read_bytes())


def test_what_is_let_through_splits_any_long_text():
    """One that were to look at each pair of characters would be at it until pytest ends it."""
    for pattern in IN_USE:
        split = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
        for unit in ("a", " ", "\n", " \n", "A", "é", "7", "-", "a ", "'"):
            text = unit * 10_000
            assert "".join(part for part, _ in split.pre_tokenize_str(text)) == text, (pattern, unit)


@pytest.fixture
def uncompiled(monkeypatch):
    """The library must not see the file at all."""

    class Library:
        @staticmethod
        def from_buffer(data):
            pytest.fail("the library was given the file")

    monkeypatch.setattr(hf_json.tokenizers, "Tokenizer", Library)


@pytest.mark.usefixtures("uncompiled")
def test_a_hostile_pattern_is_refused_before_it_is_compiled(gemma_json, load_content):
    for pattern in HOSTILE:
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        inside = {"type": "Sequence", "pretokenizers": [{"type": "Sequence", "pretokenizers": [split]}]}
        replace = {"type": "Replace", "pattern": {"Regex": pattern}, "content": " "}
        for changes in (
            {"pre_tokenizer": split},
            {"pre_tokenizer": inside},
            {"normalizer": replace},
            {"decoder": {"type": "Sequence", "decoders": [replace]}},
        ):
            with pytest.raises(TokenizerError, match="as the pattern of") as caught:
                load_content(gemma_json | changes)
            assert len(str(caught.value)) < 800


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "x" * 1_000_000}},
        {"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}},
        {"normalizer": {"type": "Prepend", "prepend": "x" * 1_000_000}},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "YWJj"}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 10_000}},
        {"normalizer": {"type": ["Replace"]}},
        {"normalizer": {"pattern": {"Regex": "(a+)+$"}, "content": " "}},
        {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        {"pre_tokenizer": {"type": "Split", "pattern": {"String": " ", "Regex": "(a+)+$"}, "behavior": "Isolated"}},
        {"decoder": {"type": "CTC", "pad_token": "x", "word_delimiter_token": "|", "cleanup": True}},
    ],
)
def test_other_steps_that_take_long_or_grow(gemma_json, load_content, changes):
    with pytest.raises(TokenizerError):
        load_content(gemma_json | changes)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("place", ["behind the model", "twice", "escaped", "inside", "in a text before"])
def test_nothing_is_hidden_by_where_it_stands(gemma_json, tmp_path, place):
    hostile = '{"type":"Split","pattern":{"Regex":"(a+)+$"},"behavior":"Isolated","invert":false}'
    plain = {name: value for name, value in gemma_json.items() if name != "pre_tokenizer"}
    text = json.dumps(plain)
    names = {"escaped": r'"\u0070re_tokenizer"'}
    added = f"{names.get(place, chr(34) + 'pre_tokenizer' + chr(34))}:{hostile}"
    if place == "twice":
        text = json.dumps(gemma_json)
    if place == "inside":
        text = f'{{"padding":{{"model":{{}}}},{text[1:]}'
    if place == "in a text before":
        text = f'{{"version":"\\"model\\":{{",{added},{text[1:]}'
    (tmp_path / "tokenizer.json").write_text(text[:-1] + f",{added}}}")
    with pytest.raises(TokenizerError):
        hf_json.HfJsonTokenizer(tmp_path / "tokenizer.json", (tmp_path / "tokenizer.json").read_bytes(), None)


def test_what_is_put_beside_each_word_is_short(gemma_json, load_content):
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        content = gemma_json | {"model": gemma_json["model"] | {name: "x" * 100_000, "merges": []}}
        with pytest.raises(TokenizerError, match="at most 32 characters beside a word"):
            load_content(content)
