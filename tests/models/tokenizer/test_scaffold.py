"""``encode_scaffold``: the package's own text, where control strings are control tokens."""

from __future__ import annotations

from langchain_gemma_jax.models.tokenizer import load_tokenizer


def test_a_turn(tokenizer):
    scaffold = "<bos><start_of_turn>user\n"
    expected = [
        tokenizer.control_id("<bos>"),
        tokenizer.control_id("<start_of_turn>"),
        *tokenizer.encode_text("user\n"),
    ]
    assert tokenizer.encode_scaffold(scaffold) == expected
    assert tokenizer.decode(expected) == "user\n"
    assert tokenizer.decode(expected, keep_control=True) == scaffold


def test_every_control_string_is_its_token_in_any_place(tokenizer):
    for name, token_id in tokenizer.control_tokens.items():
        assert tokenizer.encode_scaffold(name) == [token_id]
        assert tokenizer.encode_scaffold(name * 2) == [token_id, token_id]
        ids = tokenizer.encode_scaffold(f"<{name}x")
        assert ids == [*tokenizer.encode_text("<"), token_id, *tokenizer.encode_text("x")]


def test_of_two_that_begin_alike_it_is_the_longer(gemma_json, load_content):
    vocabulary = gemma_json["model"]["vocab"]
    longer = dict(gemma_json["added_tokens"][-1], id=len(vocabulary), content="<bos><start_of_turn>")
    tokenizer = load_content(gemma_json | {"added_tokens": [*gemma_json["added_tokens"], longer]})
    assert tokenizer.encode_scaffold("<bos><start_of_turn><bos>") == [len(vocabulary), tokenizer.bos_id]


def test_no_scaffold_is_no_tokens(tokenizer):
    assert tokenizer.encode_scaffold("") == []


def test_words_and_scaffold_side_by_side_stay_apart(tokenizer):
    """The two halves of a marker, one of them the user's."""
    ids = tokenizer.encode_scaffold("<start_of") + tokenizer.encode_text("_turn>")
    assert set(ids).isdisjoint(tokenizer.control_tokens.values())
    assert tokenizer.decode(ids) == "<start_of_turn>"


def test_both_formats_agree_on_what_is_control(folders):
    first, *others = (set(load_tokenizer(folder).control_tokens) for folder in folders.values())
    assert all(other == first for other in others)


def test_control_tokens_cannot_be_changed(tokenizer):
    assert not hasattr(tokenizer.control_tokens, "__setitem__")


def test_names_and_ids(tokenizer):
    for name, token_id in tokenizer.control_tokens.items():
        assert tokenizer.control_id(name) == token_id
        assert tokenizer.control_name(token_id) == name
        assert tokenizer.token_bytes(token_id) == b""
    assert list(tokenizer.control_tokens.values()) == sorted(tokenizer.control_tokens.values())
    assert tokenizer.control_id("<table>") is None
    assert tokenizer.control_name(tokenizer.encode_text("a")[0]) is None
