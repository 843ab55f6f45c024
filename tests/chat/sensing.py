"""How models that are not there would have their pictures and sounds: a few soft tokens each."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.seams.media_support import PictureRules, PlacedMedium, SoundRules
from tests.dialects.vocabulary import tokenizer

SOFT = 3


def control(name: str) -> int:
    found = tokenizer().control_id(name)
    assert found is not None, name
    return found


@dataclass(frozen=True)
class SeenPictures(PictureRules):
    """Three soft tokens for each picture, unless more are asked for; for Gemma 3 with a paragraph's ends around."""

    apart: str = ""

    @property
    def most_soft_tokens(self) -> int:
        return 8

    def place(self, picture, max_soft_tokens):
        count = max_soft_tokens or SOFT
        if count > 8:
            raise InputError(f"max_soft_tokens: expected at most 8, found {count}.")
        paragraph = tuple(tokenizer().encode_text(self.apart))
        begin, end = ("<start_of_image>", "<end_of_image>") if self.apart else ("<|image>", "<image|>")
        before, after = (*paragraph, control(begin)), (control(end), *paragraph)
        return PlacedMedium(before, (control("<pad>"),) * count, after, picture.digest, {"pixels": picture.pixels})


@dataclass(frozen=True)
class HeardSounds(SoundRules):
    """A soft token for each tenth of a second."""

    @property
    def most_soft_tokens(self) -> int:
        return 300

    def place(self, sound):
        if sound.seconds > 30:
            raise InputError("expected a sound of at most 30 seconds.")
        count = max(1, round(sound.seconds * 10))
        return PlacedMedium((control("<|audio>"),), (0,) * count, (), sound.digest, {"samples": sound.samples})
