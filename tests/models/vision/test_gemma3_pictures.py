"""Pictures of Gemma 3, and pieces of long ones, as transformers prepares them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from langchain_gemma_jax.dialects.conversation.messages import MediaPart
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece, RenderedPrompt
from langchain_gemma_jax.media.block_forms import media_block
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.seams.media_support import MediaSupport, Scan
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from langchain_gemma_jax.models.vision.gemma3_pictures import SquarePictures, crops
from tests.models.vision.soft_tokens import check_pictures
from tests.parity.media_models import picture
from tests.parity.scanned_pictures import MARKS, MODEL, SCANS, SOFT_TOKENS, TEXT, vocabulary
from tests.seeing_folder import golden


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary()))
    ends = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(ends))
    return load_tokenizer(folder)


def test_pieces_and_the_ids_around_them_are_those_of_transformers(tokenizer):
    begin, soft, end = map(tokenizer.control_id, MARKS)
    support = MediaSupport(SquarePictures(42, SOFT_TOKENS, (begin,), soft, (end,)))
    part = MediaPart(media_block({"type": "image", "base64": "eA=="}, "a"))
    before, after = TEXT.split(MARKS[0])
    prompt = RenderedPrompt(
        (PromptPiece(before), PromptPiece(MARKS[0], is_control=True, medium=part, apart="\n\n"), PromptPiece(after))
    )
    found, cut = golden("pan_and_scan"), 0
    for index, (number, scan) in enumerate(SCANS):
        shown = support.place_all(Picture(picture(MODEL, 0, number)), scan=Scan(**scan))
        cut += len(shown) > 1
        assert len(shown) - 1 == found[f"count_{index}"].sum(), (number, scan)
        theirs, ours = found[f"pixels_{index}"].transpose(1, 2, 0), shown[-1].inputs["pixels"]
        assert np.abs(ours.astype(int) - theirs).max() <= 1, (number, scan)
        encoded = prompt.encode(tokenizer, placing=lambda _, shown=shown: [("image", each) for each in shown])
        assert list(encoded.ids) == found[f"ids_{index}"].tolist(), (number, scan)
        assert len(encoded.media) == len(shown)
    assert cut > 12


def test_a_picture_is_never_cut_to_nothing():
    for height, width in ((1, 9), (9, 1), (2, 3), (1, 1000)):
        pixels = np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)
        pieces = crops(Picture(pixels), Scan(1, 4, 1.0))
        assert len(pieces) >= 2
        assert (np.concatenate([piece.pixels for piece in pieces], axis=int(width > height)) == pixels).all()


def test_pictures_are_prepared_as_transformers_prepares_them(tmp_path):
    check_pictures("gemma-3-4b-vision", tmp_path)
