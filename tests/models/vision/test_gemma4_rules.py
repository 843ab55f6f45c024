"""Pictures of Gemma 4 as transformers prepares them."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.seams.media_support import MediaSupport, Scan
from langchain_gemma_jax.models.vision.gemma4_rules import PatchedPictures
from tests.models.vision.soft_tokens import check_pictures


@pytest.mark.parametrize("name", ["gemma-4-e4b-vision", "gemma-4-31b-vision", "gemma-4-12b-unified"])
def test_pictures_are_prepared_as_transformers_prepares_them(name, tmp_path):
    check_pictures(name, tmp_path)


def test_models_that_know_no_pieces_refuse_to_make_some():
    support = MediaSupport(PatchedPictures(70, 4, 3, merged=False, before=(), placeholder=1, after=()))
    with pytest.raises(InputError, match="pan_and_scan: this model takes a picture in its own shape"):
        support.place_all(Picture(np.zeros((40, 300, 3), np.uint8)), scan=Scan())
