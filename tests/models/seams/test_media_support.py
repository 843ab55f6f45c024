"""The media that a model can take, and the errors for the rest."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Picture, Sound
from langchain_gemma_jax.models.seams.media_support import MediaSupport, PictureRules, PlacedMedium, Scan, SoundRules

PICTURE, SOUND = Picture(np.zeros((2, 3, 3), np.uint8)), Sound(np.zeros(9, np.float32))


class Pictures(PictureRules):
    most_soft_tokens = 4

    def place(self, picture, max_soft_tokens):
        return PlacedMedium((1,), (2,) * (max_soft_tokens or 3), (3,), picture.digest, {})


class Pieces(Pictures):
    def scanned(self, picture, scan):
        return [("whole", picture), *(("piece", picture) for _ in range(scan.max_num_crops))]


class Sounds(SoundRules):
    most_soft_tokens = 4

    def place(self, sound):
        return PlacedMedium((), (7,), (), sound.digest, {})


def test_each_kind_goes_to_its_own_rules_and_what_a_model_lacks_is_said():
    both = MediaSupport(Pictures(), Sounds())
    assert len(both.place(PICTURE)) == 5
    assert len(both.place(PICTURE, max_soft_tokens=1)) == 3
    assert both.place(SOUND).placeholders == (7,)
    with pytest.raises(InputError, match="hears sounds, and sees no pictures"):
        MediaSupport(sounds=Sounds()).place(PICTURE)
    with pytest.raises(InputError, match="sees pictures, and hears no sounds"):
        MediaSupport(Pictures()).place(SOUND)


def test_pieces_are_placed_as_pictures_with_their_words_and_sounds_have_none():
    placed = MediaSupport(Pieces(), Sounds()).place_all(PICTURE, max_soft_tokens=2, scan=Scan(max_num_crops=2))
    assert [(one.caption, len(one)) for one in placed] == [("whole", 4), ("piece", 4), ("piece", 4)]
    assert [one.caption for one in MediaSupport(Pieces(), Sounds()).place_all(SOUND, scan=Scan())] == [""]
    with pytest.raises(InputError, match="pan_and_scan: this model"):
        MediaSupport(Pictures()).place_all(PICTURE, scan=Scan())
