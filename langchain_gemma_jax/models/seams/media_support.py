"""The pictures and sounds that a model can take, and their place in a prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Medium, Picture, Sound


@dataclass(frozen=True, eq=False)
class PlacedMedium:
    """A picture or a sound, prepared for one model: its ids in a prompt, and the input of its encoder."""

    before: tuple[int, ...]  # ids around the soft tokens that belong to the model's processor
    placeholders: tuple[int, ...]  # one for each soft token
    after: tuple[int, ...]
    digest: bytes  # of all that decides what the model sees: the prepared content, and how it was prepared
    inputs: Mapping[str, npt.NDArray[Any]] = field(repr=False)  # padded to the shape of an encoder's program
    caption: str = ""  # words that the model's processor puts before it

    def __len__(self) -> int:
        return len(self.before) + len(self.placeholders) + len(self.after)


@dataclass(frozen=True)
class Scan:
    """Settings for showing a long picture a second time in pieces. Gemma 3's processors call it pan and scan."""

    min_crop_size: int = 256  # pixels of a piece's shorter side: a picture of which none would be so large stays whole
    max_num_crops: int = 4
    min_ratio_to_activate: float = 1.2  # of the longer side to the shorter one


class PictureRules(ABC):
    """A model's rules for preparing pictures."""

    @property
    @abstractmethod
    def most_soft_tokens(self) -> int:
        """The largest number of soft tokens for one picture, for any request."""

    @abstractmethod
    def place(self, picture: Picture, max_soft_tokens: int | None) -> PlacedMedium:
        """Prepare a picture.

        Raises:
            InputError: the model cannot take a picture of this shape, or has no such budget.
        """

    def scanned(self, picture: Picture, scan: Scan) -> Sequence[tuple[str, Picture]]:  # noqa: ARG002  most have none
        """Return the pictures that the model is shown of one picture, each with the words before it.

        Raises:
            InputError: this model was not trained with pieces of pictures.
        """
        raise InputError(
            "pan_and_scan: this model takes a picture in its own shape, and was not trained with pieces of it. Leave "
            "pan_and_scan out; max_soft_tokens shows it more."
        )


class SoundRules(ABC):
    """A model's rules for preparing sounds."""

    @property
    @abstractmethod
    def most_soft_tokens(self) -> int:
        """The largest number of soft tokens for one sound."""

    @abstractmethod
    def place(self, sound: Sound) -> PlacedMedium:
        """Prepare a sound.

        Raises:
            InputError: the sound is too long or too short.
        """


@dataclass(frozen=True)
class MediaSupport:
    """The media that a model can take. A model that reads text alone has no ``MediaSupport``."""

    pictures: PictureRules | None = None
    sounds: SoundRules | None = None

    def place_all(
        self, medium: Medium, *, max_soft_tokens: int | None = None, scan: Scan | None = None
    ) -> tuple[PlacedMedium, ...]:
        """Prepare a picture or a sound for this model; with ``scan``, the pieces of a picture too.

        Raises:
            InputError: as ``place``, or this model was not trained with pieces of pictures.
        """
        if scan is None or self.pictures is None or not isinstance(medium, Picture):
            return (self.place(medium, max_soft_tokens=max_soft_tokens),)
        return tuple(
            replace(self.place(picture, max_soft_tokens=max_soft_tokens), caption=caption)
            for caption, picture in self.pictures.scanned(medium, scan)
        )

    def place(self, medium: Medium, *, max_soft_tokens: int | None = None) -> PlacedMedium:
        """Prepare a picture or a sound for this model. ``max_soft_tokens`` is the budget of a picture.

        Raises:
            InputError: the model cannot take it. The message says why.
        """
        if isinstance(medium, Picture):
            if self.pictures is None:
                raise InputError("This model hears sounds, and sees no pictures: it has no vision encoder.")
            return self.pictures.place(medium, max_soft_tokens)
        if self.sounds is None:
            raise InputError("This model sees pictures, and hears no sounds: it has no audio encoder.")
        return self.sounds.place(medium)
