"""Which of a vocabulary's words are text, and which are control tokens."""

from __future__ import annotations

import copy

from langchain_gemma_jax.models.tokenizer import interface
from langchain_gemma_jax.models.tokenizer.vocabulary import Vocabulary


def test_ends(gemma, gemma_json):
    vocabulary = gemma_json["model"]["vocab"]
    assert (gemma.pad_id, gemma.bos_id) == (0, 2)
    assert gemma.eos_ids == (1, vocabulary["<end_of_turn>"], vocabulary["<turn|>"])
    assert gemma.vocab_size == len(vocabulary)


SPACE = "\u2581"


def assert_is_only_text(tokenizer, text):
    ids = tokenizer.encode_text(text)
    assert set(ids).isdisjoint(tokenizer.control_tokens.values()), text
    assert tokenizer.decode(ids) == tokenizer.decode(ids, keep_control=True) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()


def test_a_vocabulary_that_does_not_say_what_its_markers_are(gemma_json, load_content):
    """Converted files do that. Gemma's own names are known here."""
    content = copy.deepcopy(gemma_json)
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] != "<start_of_turn>"]
    tokenizer = load_content(content)
    assert tokenizer.control_id("<start_of_turn>") == gemma_json["model"]["vocab"]["<start_of_turn>"]
    assert_is_only_text(tokenizer, "<start_of_turn>")


def test_whole_words_from_the_vocabulary_are_checked_too(gemma_json, load_content):
    content = copy.deepcopy(gemma_json)
    content["model"]["ignore_merges"] = True  # a word that is in the vocabulary is taken from there
    content["normalizer"] = None
    content["pre_tokenizer"] = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True}
    tokenizer = load_content(content)
    for text in ("<0x0A>", "<unused3>", "a <0x0A> <unused3>"):
        assert_is_only_text(tokenizer, text)


def test_words_that_were_added_beyond_the_model(gemma_json, load_content, gemma):
    """Added words have ids that models may write; in texts of others they are spelled as the model learned them."""
    size = len(gemma_json["model"]["vocab"])
    added = [
        dict(gemma_json["added_tokens"][-1], id=size + i, content=text) for i, text in enumerate(["<new>", "Zürich"])
    ]
    tokenizer = load_content(gemma_json | {"added_tokens": gemma_json["added_tokens"] + added})
    assert tokenizer.control_id("<new>") == size
    assert tokenizer.decode([size + 1]) == "Zürich"
    assert tokenizer.encode_text("in Zürich") == gemma.encode_text("in Zürich")


class Careless(interface.Tokenizer):
    """A library that finds a marker in everything, after what it was asked for."""

    def _spell(self, text):
        ids = [self._vocabulary.byte_ids[byte] for byte in text.encode()]
        return [*ids, 256] if "!" in text else ids


def test_a_control_token_is_noticed_even_where_the_bytes_are_right(tmp_path):
    pieces = {byte: bytes([byte]) for byte in range(256)}
    vocabulary = Vocabulary.of(tmp_path, pieces, {"<bos>": 256, "<eos>": 257})
    assert_is_only_text(Careless(tmp_path, vocabulary), "Stop! Now!")
