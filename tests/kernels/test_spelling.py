"""The kernels spell texts as SentencePiece does."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.spelling import Speller
from langchain_gemma_jax.models.tokenizer.sentencepiece_model import PieceType, SentencePieces

pytestmark = pytest.mark.skipif(kernels().code is None, reason="the kernels do not run here")

LETTERS = "abcdefgh\u2581\u2581é語🙂\n"
SEEDS = 60


def made_up(rng: random.Random) -> SentencePieces:
    """A vocabulary of pieces of pieces, some of them unused or always whole, with scores of which some are equal."""
    texts = dict.fromkeys(rng.sample(LETTERS, rng.randrange(4, len(LETTERS))))
    texts["\u2581"] = None
    for _ in range(rng.randrange(5, 120)):
        texts[rng.choice(list(texts)) + rng.choice(list(texts))] = None
    names = ["<unk>", "<bos>", "<eos>", "<pad>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [PieceType.UNKNOWN, *[PieceType.CONTROL] * 3, *[PieceType.BYTE] * 256]
    usual = [PieceType.NORMAL] * 12 + [PieceType.USER_DEFINED, PieceType.UNUSED]
    for text in texts:
        names.append(text)
        kinds.append(PieceType.NORMAL if text == "\u2581" else rng.choice(usual))
    scores = [0.0] * 260 + [float(-rng.randrange(len(texts))) for _ in texts]
    return SentencePieces(names, np.array(scores, np.float32), np.array(kinds, np.uint8), 0, 1, 2, 3)


def speller(known: SentencePieces) -> Speller:
    texts = [name.replace("\u2581", " ").encode() for name in known.names]
    ends = np.cumsum([len(text) for text in texts], dtype=np.uint32)
    of_bytes = np.arange(4, 260, dtype=np.int32)
    return Speller(kernels().code, b"".join(texts), ends, known.scores, known.types, of_bytes)


def text_of(rng: random.Random, known: SentencePieces) -> str:
    parts = [*known.names[260:], *LETTERS, *"xyzß€", " ", "  ", "<unk>", "<0x41>", "<bos>"]
    return "".join(rng.choices(parts, k=rng.randrange(60))).replace("\u2581", " ")


def test_ids_are_those_of_sentencepiece():
    for seed in range(SEEDS):
        rng = random.Random(seed)
        known = made_up(rng)
        library, own = SentencePieceProcessor(model_proto=known.message()), speller(known)
        for _ in range(60):
            text = text_of(rng, known)
            assert own.ids(text.encode()) == library.encode(text), (seed, text)


def test_many_threads_share_one():
    rng = random.Random(0)
    known = made_up(rng)
    own = speller(known)
    texts = [text_of(rng, known).encode() * 20 for _ in range(64)]
    alone = [own.ids(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        for found in (threads.map(own.ids, texts) for _ in range(8)):
            assert list(found) == alone


def test_a_vocabulary_that_contradicts_itself_is_refused():
    known = made_up(random.Random(1))
    known.names[-1] = known.names[-2]
    known.types[-2:] = PieceType.NORMAL
    with pytest.raises(ValueError, match="expected each piece once, found the piece"):
        speller(known)
    one = np.zeros(1, np.uint32)
    for ends, scores in ((one, np.zeros(2, np.float32)), (one + 9, np.zeros(1, np.float32))):
        with pytest.raises(ValueError, match="expected an end, a score and a kind"):
            Speller(kernels().code, b"a", ends, scores, np.ones(1, np.uint8), np.zeros(256, np.int32))


def test_no_text_is_no_ids():
    assert speller(made_up(random.Random(2))).ids(b"") == []
