"""Reading the kinds of pieces out of a SentencePiece model, and changing them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

from langchain_gemma_jax.models.tokenizer.sentencepiece_model import (
    PieceType,
    SentencePieces,
    piece_types,
    with_control_pieces,
)


def test_kinds_are_as_the_library_knows_them(sentencepiece_model, markers):
    library = SentencePieceProcessor(model_proto=sentencepiece_model)
    types = piece_types(sentencepiece_model)
    assert len(types) == library.vocab_size()
    for token_id, kind in enumerate(types):
        assert library.is_control(token_id) == (kind == PieceType.CONTROL)
        assert library.is_unknown(token_id) == (kind == PieceType.UNKNOWN)
        assert library.is_byte(token_id) == (kind == PieceType.BYTE)
    user_defined = {library.id_to_piece(i) for i, kind in enumerate(types) if kind == PieceType.USER_DEFINED}
    assert {"<start_of_turn>", "\n\n", "<table>"} < user_defined
    assert types.count(PieceType.NORMAL) > 100  # the kind of those that do not say


def test_changed_pieces_are_control_and_the_others_as_they_were(sentencepiece_model):
    before = SentencePieceProcessor(model_proto=sentencepiece_model)
    ids = {0, 7, 30, before.piece_to_id("<table>"), before.vocab_size() - 1}
    changed = with_control_pieces(sentencepiece_model, ids)
    after = SentencePieceProcessor(model_proto=changed)
    names = list(range(before.vocab_size()))
    assert after.id_to_piece(names) == before.id_to_piece(names)
    expected = [PieceType.CONTROL if i in ids else kind for i, kind in enumerate(piece_types(sentencepiece_model))]
    assert piece_types(changed) == expected


def test_nothing_to_change_changes_nothing(sentencepiece_model):
    assert with_control_pieces(sentencepiece_model, set()) == sentencepiece_model


def test_long_pieces(train_sentencepiece_model):
    """One whose length takes two bytes, and one whose length does so only after the change."""
    names = ["<" + "x" * length + ">" for length in (111, 115, 116, 117, 120, 200)]
    model = train_sentencepiece_model(user_defined_symbols=names)
    library = SentencePieceProcessor(model_proto=model)
    ids = {library.piece_to_id(name) for name in names}
    changed = SentencePieceProcessor(model_proto=with_control_pieces(model, ids))
    assert all(changed.is_control(token_id) for token_id in ids)
    assert [changed.id_to_piece(token_id) for token_id in sorted(ids)] == names


def test_a_vocabulary_is_written_as_the_library_reads_it():
    """With names of every length that is written in another way, and of every kind."""
    kinds = [PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.CONTROL]
    for seed in range(5):
        rng = random.Random(seed)
        names, types = ["<unk>"], [PieceType.UNKNOWN]
        for number, length in enumerate([*range(0, 130, 4), *range(90, 97), 116, 117, 118, 200]):
            names.append(f"{number}\u2581" + "".join(rng.choices("xyzä日🙂" if seed else "x", k=length)))
            types.append(rng.choice(kinds))
        names += [f"<0x{byte:02X}>" for byte in range(256)]
        types += [PieceType.BYTE] * 256
        scores = -np.arange(len(names), dtype=np.float32)
        known = SentencePieces(names, scores, np.array(types, np.uint8), 0, -1, -1, -1)
        controls = {at for at, kind in enumerate(types) if kind == PieceType.USER_DEFINED and rng.random() < 0.5}
        message = known.message(controls)
        library = SentencePieceProcessor(model_proto=message)
        assert library.id_to_piece(list(range(len(names)))) == names
        assert library.get_score(list(range(len(names)))) == scores.tolist()
        assert piece_types(message) == [PieceType.CONTROL if at in controls else kind for at, kind in enumerate(types)]


def test_a_kind_of_the_future_is_like_none():
    """Protobuf's own readers do the same with a value that they do not know."""
    assert piece_types(b"\x0a\x05\x0a\x01a\x18\x09") == [PieceType.NORMAL]


@pytest.mark.parametrize("data", [b"\x0b", b"\x0a\x05abc", b"\xff" * 11, b"\x0a\x02\x0a\x05", b"\x15\x00", b"\x0a"])
def test_what_is_no_such_message_is_an_error(data):
    with pytest.raises((ValueError, IndexError)):
        piece_types(data)


def test_damage_is_an_error_or_other_kinds_and_nothing_else(sentencepiece_model):
    rng = random.Random(3)
    for _ in range(300):
        data = bytearray(sentencepiece_model[: rng.randrange(1, 400)])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            types = piece_types(bytes(data))
        except (ValueError, IndexError):
            continue
        assert all(kind in PieceType for kind in types)
