"""``StreamDecoder``: the same text as ``decode``, token by token, in whole characters."""

from __future__ import annotations

import copy
import random

import pytest

from langchain_gemma_jax.models.tokenizer import StreamDecoder
from tests.counted import growth

MULTI_BYTE = "é€🙂日ह\u0301👩\u200d👧".encode()


def stream(tokenizer, ids, **options):
    decoder = StreamDecoder(tokenizer, **options)
    return [*map(decoder.push, ids), decoder.finish()]


def random_ids(rng, tokenizer):
    """Mostly bytes, mostly such that nearly make characters; words, control tokens and nonsense between them."""
    byte_ids = tokenizer._vocabulary.byte_ids
    choices = (
        lambda: byte_ids[rng.choice(MULTI_BYTE)],
        lambda: byte_ids[rng.choice(MULTI_BYTE)],
        lambda: byte_ids[rng.randrange(0x80, 0x100)],
        lambda: rng.randrange(tokenizer.vocab_size),
        lambda: rng.choice([tokenizer.bos_id, tokenizer.eos_ids[0], tokenizer.vocab_size, -1]),
    )
    return [rng.choice(choices)() for _ in range(rng.randint(0, 14))]


@pytest.mark.parametrize("keep_control", [False, True])
def test_random_garbage_streams_as_it_decodes(tokenizer, keep_control):
    rng = random.Random(28)
    for _ in range(5000):
        ids = random_ids(rng, tokenizer)
        parts = stream(tokenizer, ids, keep_control=keep_control)
        for part in parts:
            part.encode("utf-8")
        assert "".join(parts) == tokenizer.decode(ids, keep_control=keep_control)


def test_characters_are_never_cut(tokenizer):
    text = "Grüße, 日本語! 👩\u200d👩\u200d👧 <bos> हिन्दी\n🇨🇭"
    for ids in (tokenizer.encode_text(text), [tokenizer._vocabulary.byte_ids[byte] for byte in text.encode()]):
        parts = stream(tokenizer, ids)
        assert "".join(parts) == text
        assert parts[-1] == ""
        assert not any("\ufffd" in part for part in parts)


def test_text_comes_as_soon_as_it_is_whole(tokenizer):
    decoder = StreamDecoder(tokenizer)
    ids = [tokenizer._vocabulary.byte_ids[byte] for byte in "a🙂b".encode()]
    assert [decoder.push(token_id) for token_id in ids] == ["a", "", "", "", "🙂", "b"]


def test_a_fork_goes_on_by_itself(tokenizer):
    rng = random.Random(5)
    for _ in range(200):
        ids, other = random_ids(rng, tokenizer), random_ids(rng, tokenizer)
        for at in range(len(ids) + 1):
            trunk = StreamDecoder(tokenizer)
            begun = "".join(map(trunk.push, ids[:at]))
            for fork in (trunk.copy(), copy.copy(trunk)):
                assert begun + "".join(map(fork.push, other)) + fork.finish() == tokenizer.decode(ids[:at] + other)
            assert begun + "".join(map(trunk.push, ids[at:])) + trunk.finish() == tokenizer.decode(ids)


def test_a_fork_keeps_control_tokens_if_the_trunk_does(tokenizer):
    assert StreamDecoder(tokenizer, keep_control=True).copy().push(tokenizer.bos_id) == "<bos>"


def test_after_the_end_it_is_as_new(tokenizer):
    decoder = StreamDecoder(tokenizer)
    assert decoder.push(tokenizer._vocabulary.byte_ids[0xE2]) == ""
    assert decoder.finish() == "\ufffd"
    assert decoder.finish() == ""
    assert "".join(map(decoder.push, tokenizer.encode_text("new"))) == "new"


def test_what_is_held_back_is_bounded_and_the_cost_is_linear(tokenizer):
    decoder = StreamDecoder(tokenizer)
    lead = tokenizer._vocabulary.byte_ids[0xF0]
    for _ in range(1000):
        decoder.push(lead)
        assert len(decoder._held) <= 3

    def push(count):
        for _ in range(count):
            decoder.push(lead)

    assert growth(lambda: push(500), lambda: push(4_000)) < 12
