"""What pictures and sounds a model can take, and what stands for one of them in a prompt."""

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
    """A picture or a sound, prepared for one model: the ids that stand for it, and what its encoder is given."""

    before: tuple[int, ...]  # ids around the soft tokens that belong to the model's processor
    placeholders: tuple[int, ...]  # one for each soft token
    after: tuple[int, ...]
    digest: bytes  # of all that decides what the model sees: the prepared content, and how it was prepared
    inputs: Mapping[str, npt.NDArray[Any]] = field(repr=False)  # padded to the shape of an encoder's program
    said: str = ""  # words that the model's processor puts before it

    def __len__(self) -> int:
        return len(self.before) + len(self.placeholders) + len(self.after)


@dataclass(frozen=True)
class Scan:
    """How a long picture is shown a second time in pieces, which the processors of Gemma 3 call pan and scan."""

    min_crop_size: int = 256  # pixels of a piece's shorter side: a picture of which none would be so large stays whole
    max_num_crops: int = 4
    min_ratio_to_activate: float = 1.2  # of the longer side to the shorter one


class PictureRules(ABC):
    """How a model wants its pictures."""

    @property
    @abstractmethod
    def most_soft_tokens(self) -> int:
        """The most soft tokens that one picture can become, whatever is asked for."""

    @abstractmethod
    def place(self, picture: Picture, max_soft_tokens: int | None) -> PlacedMedium:
        """Prepare a picture.

        Raises:
            InputError: it has a shape that the model cannot take, or this model has no such budget.
        """

    def scanned(self, picture: Picture, scan: Scan) -> Sequence[tuple[str, Picture]]:  # noqa: ARG002  most have none
        """Return what is shown of a picture, each with the words before it.

        Raises:
            InputError: this model was not trained with pieces of pictures.
        """
        raise InputError(
            "pan_and_scan: this model takes a picture in its own shape, and was not trained with pieces of it. Leave "
            "pan_and_scan out; max_soft_tokens shows it more."
        )


class SoundRules(ABC):
    """How a model wants its sounds."""

    @property
    @abstractmethod
    def most_soft_tokens(self) -> int:
        """The most soft tokens that one sound can become."""

    @abstractmethod
    def place(self, sound: Sound) -> PlacedMedium:
        """Prepare a sound.

        Raises:
            InputError: it is too long, or too short to be heard.
        """


@dataclass(frozen=True)
class MediaSupport:
    """What a model can see and hear. A model that only reads has none of it."""

    pictures: PictureRules | None = None
    sounds: SoundRules | None = None

    def place_all(
        self, medium: Medium, *, max_soft_tokens: int | None = None, scan: Scan | None = None
    ) -> tuple[PlacedMedium, ...]:
        """Prepare what this model is shown of a picture or a sound: with ``scan``, pieces of a picture too.

        Raises:
            InputError: as ``place``, or this model knows no pieces.
        """
        if scan is None or self.pictures is None or not isinstance(medium, Picture):
            return (self.place(medium, max_soft_tokens=max_soft_tokens),)
        return tuple(
            replace(self.place(picture, max_soft_tokens=max_soft_tokens), said=said)
            for said, picture in self.pictures.scanned(medium, scan)
        )

    def place(self, medium: Medium, *, max_soft_tokens: int | None = None) -> PlacedMedium:
        """Prepare a picture or a sound for this model. ``max_soft_tokens`` bounds what a picture becomes.

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
