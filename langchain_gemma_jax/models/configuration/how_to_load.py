"""What tells apart models that were loaded from the same place."""

from __future__ import annotations

from typing import TypedDict


class ReadAs(TypedDict, total=False):
    """How a model is read: the arguments of ``load_model`` that make another model of the same files."""

    dtype: str | None
    revision: str | None
    weights: str | None
    activations: str | None
    devices: int | str | None
    trust_remote_code: bool


class LoadedAs(ReadAs, total=False):
    """How a model is loaded: as it is read, and how often it is there."""

    replicas: int | str | None


class HowToLoad(LoadedAs, total=False):
    """How a model is loaded, and the token with which it is fetched: which makes no other model of it."""

    token: str | None
