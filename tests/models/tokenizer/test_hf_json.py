from __future__ import annotations

import copy

import pytest

from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.models.tokenizer.conftest import write


@pytest.mark.parametrize("name", ["sentencepiece", "byte_level_json"])
def test_the_library_does_not_look_for_markers(folders, name):
    """Markers that it does not find need not be taken out again, and the text around them stays in one piece."""
    tokenizer = load_tokenizer(folders[name])
    for marker in (marker for marker in tokenizer.control_tokens if any(map(str.isalpha, marker))):
        assert set(tokenizer._spell(f"a {marker} b")).isdisjoint(tokenizer.control_tokens.values())


def test_dropout_is_for_training(gemma_json, load_content, gemma, prose):
    content = copy.deepcopy(gemma_json)
    content["model"]["dropout"] = 0.5
    tokenizer = load_content(content)
    for _ in range(20):
        assert tokenizer.encode_text(prose) == gemma.encode_text(prose)


def test_truncation_and_padding_are_not_for_prompts(gemma_json, load_content, gemma, prose):
    truncation = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padding = {"direction": "Left", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
    padding["strategy"] = {"Fixed": 900}
    tokenizer = load_content(gemma_json | {"truncation": truncation, "padding": padding})
    assert tokenizer.encode_text(prose) == gemma.encode_text(prose)


def test_a_vocabulary_over_bytes_writes_added_words_as_they_are(byte_level_json, load_content):
    """In its own pieces ``ü`` is the byte 0xFC."""
    content = copy.deepcopy(byte_level_json)
    size = len(content["model"]["vocab"])
    content["model"]["vocab"] |= {"Zürich": size, "<日本>": size + 1}
    matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": size, "content": "Zürich", "special": False},
        {"id": size + 1, "content": "<日本>", "special": True},
    ]
    content["added_tokens"] = [token | matching for token in added] + [
        token | {"id": token["id"] + 2}
        for token in content["added_tokens"]
        if token["content"] not in content["model"]["vocab"]
    ]
    tokenizer = load_content(content)
    assert tokenizer.token_bytes(size) == "Zürich".encode()
    assert tokenizer.encode_text("Zürich") == [size]
    assert tokenizer.control_id("<日本>") == size + 1


def test_a_text_begins_with_bos_or_as_another_familys_file_has_it(byte_level_json, gemma, tmp_path):
    """GPT-2 has no template, and its texts begin with nothing; Llama's template puts bos there."""
    assert gemma.begin == (gemma.bos_id,)
    bare = {**byte_level_json, "post_processor": None}
    bos = {"id": "<bos>", "ids": [gemma.bos_id], "tokens": ["<bos>"]}
    pieces = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": pieces, "pair": pieces, "special_tokens": {"<bos>": bos}}
    for name, content, begins in (("bare", bare, ()), ("with", {**bare, "post_processor": template}, (gemma.bos_id,))):
        folder = write(tmp_path / name, content)
        assert load_tokenizer(folder, may_lack_bos=True).begin == begins
        ours = load_tokenizer(folder)
        assert ours.begin == (ours.bos_id,), "a Gemma's texts begin with bos, whatever the file says"
