import random

import pytest

from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan, token_keys, whole_media

IMAGE = (7,) * 6  # placeholders


def test_tokens_are_their_own_keys():
    prompt = Prompt.of_tokens([5, 6, 7])
    assert (list(prompt.ids), list(prompt.keys), len(prompt)) == ([5, 6, 7], [5, 6, 7], 3)


def test_media_of_one_digest_have_one_row_of_keys_that_nothing_else_has():
    rng = random.Random(3)
    seen: set[int] = set()
    for _ in range(200):
        digest = rng.randbytes(32)
        keys = list(MediaSpan(IMAGE, digest).keys)
        assert keys == list(MediaSpan(IMAGE, digest).keys)
        assert keys == list(MediaSpan((*IMAGE, 7), digest).keys)[: len(IMAGE)], "a place's key says where it is"
        assert all(key < 0 for key in keys), "no token has such a key"
        assert len(set(keys)) == len(IMAGE)
        assert not seen & set(keys)
        seen.update(keys)


def test_a_prompt_has_the_ids_and_keys_of_its_spans_in_their_order():
    prompt = Prompt((TokenSpan((1, 2)), MediaSpan(IMAGE, b"cat"), TokenSpan((3,))))
    assert list(prompt.ids) == [1, 2, *IMAGE, 3]
    assert list(prompt.keys) == [1, 2, *MediaSpan(IMAGE, b"cat").keys, 3]


def test_a_media_span_without_places_or_digest_is_an_error():
    for ids, digest in (((), b"cat"), (IMAGE, b"")):
        with pytest.raises(ValueError, match="found one of them empty"):
            MediaSpan(ids, digest)


def test_keys_are_not_copied_for_nothing():
    keys = token_keys([1, 2])
    assert token_keys(keys) is keys


def test_places_within_a_medium_are_no_end():
    image = MediaSpan((7,) * 5, b"a cat").keys
    keys = [1, 2, *image, 3, 4]
    assert [whole_media(keys, length) for length in range(10)] == [0, 1, 2, 2, 2, 2, 2, 7, 8, 9]
    assert whole_media(list(image), 5) == 5
    assert whole_media(list(image), 3) == 0
