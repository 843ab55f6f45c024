"""SentencePiece models that are damaged, by accident or on purpose: a ``TokenizerError``, or a sound tokenizer."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.tokenizer.sentencepiece import SentencePieceTokenizer

TEXT = "Hello wörld, 日本 <start_of_turn>\n\n  x"
HUGE = b"\xff\xff\xff\xff\x7f"  # a length of 34 billion


def damaged(model, settings, chance):
    """A model with one to eight things wrong, half of them in the ``settings`` behind its pieces."""
    found = bytearray(model)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        first = settings if chance.random() < 0.5 and settings < len(found) else 0
        at = chance.randrange(first, len(found))
        match chance.randrange(6):
            case 0:
                found[at] = chance.randrange(256)
            case 1:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                del found[at : at + chance.choice([1, 2, 8, 100])]
            case 3:
                found[at:at] = chance.randbytes(chance.choice([1, 2, 8]))
            case 4:
                source = chance.randrange(len(found))
                found[at:at] = found[source : source + chance.choice([4, 40, 400])]
            case _:
                found[at : at + len(HUGE)] = HUGE
    return bytes(found)


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 3000), marks=pytest.mark.slow)])
def test_whatever_is_wrong_with_a_model(sentencepiece_model, seeds):
    settings = sentencepiece_model.rindex(b"identity") - 8
    before, right = peak(), 0
    for seed in seeds:
        model = damaged(sentencepiece_model, settings, random.Random(seed))
        try:
            tokenizer = SentencePieceTokenizer(Path("tokenizer.model"), model)
        except TokenizerError:
            continue
        assert tokenizer.decode(tokenizer.encode_text(TEXT)) == TEXT, seed
        right += 1
    assert 0.05 * len(seeds) < right < 0.8 * len(seeds)
    assert peak() - before < 200e6, "nothing is allocated for a length that is only promised"


def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
