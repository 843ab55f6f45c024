"""A GGUF model with an mmproj file beside it, in a conversation with images: whole ones, and pieces of long ones."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.errors import MediaError
from tests.media.samples import base64_of, encoded, pixels
from tests.models.encoders.make import write_encoders, write_text

pytest.importorskip("PIL")

SEES, SOFT = "gemma-3-4b-vision", 9
IMAGE = {"type": "image", "base64": base64_of(encoded()), "mime_type": "image/png"}
LONG = {"type": "image", "base64": base64_of(encoded(array=pixels(12, 48))), "mime_type": "image/png"}


def image_tokens(answer):
    return answer.usage_metadata["input_token_details"]["image"]


@pytest.mark.long
def test_images_are_seen_and_each_piece_is_encoded_once(tmp_path, running):
    path = tmp_path / "tiny-Q8_0.gguf"
    write_text(path, SEES)
    write_encoders(tmp_path / "mmproj-tiny.gguf", SEES)
    model = ChatGemmaJax(model=str(path), max_tokens=4, temperature=0, dialect="gemma")
    assert model.profile["image_inputs"] is True
    before = running.report().media_encoded

    messages = [HumanMessage(["Look", IMAGE])]
    answer = model.invoke(messages)
    assert (image_tokens(answer), running.report().media_encoded) == (SOFT, before + 1)
    assert answer.usage_metadata["input_tokens"] == model.get_num_tokens_from_messages(messages)
    again = model.invoke([*messages, answer, HumanMessage("And?")])
    assert (image_tokens(again), running.report().media_encoded) == (SOFT, before + 1)
    assert again.usage_metadata["input_token_details"]["cache_read"] > SOFT

    scanned = {"pan_and_scan": {"min_crop_size": 8}}
    shown = [HumanMessage(["Look", LONG])]
    answer = model.invoke(shown, **scanned)
    assert (image_tokens(answer), running.report().media_encoded) == (5 * SOFT, before + 6)
    again = model.invoke([*shown, answer, HumanMessage("And?")], **scanned)
    assert (image_tokens(again), running.report().media_encoded) == (5 * SOFT, before + 6)
    assert image_tokens(model.invoke(shown)) == SOFT

    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "tiny-Q8_0.gguf").write_bytes(path.read_bytes())
    with pytest.raises(MediaError, match=r"reads text alone.*mmproj file beside it"):
        ChatGemmaJax(model=str(alone), dialect="gemma").invoke(messages)
