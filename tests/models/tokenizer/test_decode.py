"""``decode`` and ``token_bytes``, and what they make of ids that stand for nothing."""

from __future__ import annotations

import pytest


def byte_ids(tokenizer, data):
    return [tokenizer._vocabulary.byte_ids[byte] for byte in data]


def test_byte_pieces_are_bytes(gemma, gemma_json):
    for byte in range(256):
        assert gemma.token_bytes(gemma_json["model"]["vocab"][f"<0x{byte:02X}>"]) == bytes([byte])


def test_every_byte_can_be_spelled(tokenizer):
    for byte in range(256):
        assert tokenizer.token_bytes(byte_ids(tokenizer, [byte])[0]) == bytes([byte])


def test_characters_go_before_bare_bytes(gemma, gemma_json):
    assert byte_ids(gemma, b"a") == [gemma_json["model"]["vocab"]["a"]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xe2\x82\xac", "€"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xe2\x82x", "\ufffdx"),
        (b"\xff\xff", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),  # the bytes of a surrogate
        (b"\xf0\x9f\x99\x82\xf0", "🙂\ufffd"),
    ],
)
def test_bytes_that_are_no_utf8_become_the_replacement_character(tokenizer, data, text):
    assert tokenizer.decode(byte_ids(tokenizer, data)) == text


def test_a_control_token_ends_the_character_before_it(tokenizer):
    first, second = byte_ids(tokenizer, b"\xc3\xa9")
    assert tokenizer.decode([first, second]) == "é"
    assert tokenizer.decode([first, tokenizer.bos_id, second]) == "\ufffd\ufffd"
    assert tokenizer.decode([first, tokenizer.bos_id, second], keep_control=True) == "\ufffd<bos>\ufffd"


def test_ids_beyond_the_vocabulary_stand_for_nothing(tokenizer):
    """Embeddings are padded to round numbers of rows; a model can name one of those."""
    for token_id in (tokenizer.vocab_size, tokenizer.vocab_size + 500, -1, -tokenizer.vocab_size, 2**63):
        assert tokenizer.token_bytes(token_id) == b""
        assert tokenizer.decode([token_id, *tokenizer.encode_text("x")], keep_control=True) == "x"
