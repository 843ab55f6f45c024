"""Pictures and sounds are told apart by what is in them, and are of one form."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.media.medium import Picture, Sound


def test_a_digest_is_of_the_content_and_its_shape():
    wide, high = np.zeros((2, 6, 3), np.uint8), np.zeros((6, 2, 3), np.uint8)
    other = wide.copy()
    other[1, 5, 2] = 1
    sound = np.zeros(36, np.float32)
    found = [Picture(wide), Picture(high), Picture(other), Sound(sound), Sound(sound[:35])]
    assert len({each.digest for each in found}) == len(found)
    assert Picture(wide.copy()).digest == found[0].digest
    assert Picture(np.asfortranarray(wide)).digest == found[0].digest, "however it lies in memory"
    assert Sound(np.zeros(8_000, np.float32)).seconds == 0.5


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2, 3), np.float32), np.zeros((2, 2), np.uint8), np.zeros((0, 2, 3), np.uint8)]
)
def test_what_is_no_picture(array):
    with pytest.raises(ValueError, match="expected uint8 pixels"):
        Picture(array)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((3, 1), np.float32), np.zeros(0, np.float32)])
def test_what_is_no_sound(array):
    with pytest.raises(ValueError, match="expected float32 samples"):
        Sound(array)
