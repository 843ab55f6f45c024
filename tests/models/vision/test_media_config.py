"""The encoders of a model, by its configuration."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.media.medium import Picture
from tests.models.vision.soft_tokens import opened
from tests.parity.media_models import BEGIN, MODELS, PICTURE, picture


@pytest.mark.parametrize("name", [*MODELS])
def test_a_prompt_has_the_marks_of_the_models_processor_around_a_picture(name, tmp_path):
    model = opened(tmp_path, name, 0)
    placed = model.media.place(Picture(picture(name, 0, 4)))
    paragraph = tuple(model.tokenizer.encode_text("\n\n")) if name.startswith("gemma-3") else ()
    assert placed.before == (*paragraph, BEGIN)
    assert set(placed.placeholders) == {PICTURE}
    assert placed.after == (152, *paragraph)
    again = model.media.place(Picture(picture(name, 0, 4)))
    other = model.media.place(Picture(255 - picture(name, 0, 4)))
    assert placed.digest == again.digest != other.digest
