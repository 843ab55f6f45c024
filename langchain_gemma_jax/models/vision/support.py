"""What pictures and sounds a model can take, and what stands for one of them in a prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
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

    def __len__(self) -> int:
        return len(self.before) + len(self.placeholders) + len(self.after)


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
