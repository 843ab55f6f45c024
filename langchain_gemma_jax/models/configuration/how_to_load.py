"""How a model is loaded: one value from the chat model to the disk."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict, cast

from langchain_gemma_jax.errors import InputError


class LoadOptions(TypedDict, total=False):
    """The fields of ``HowToLoad`` as arguments of a call."""

    dtype: str | None
    revision: str | None
    weights: str | None
    activations: str | None
    devices: int | str | None
    replicas: int | str | None
    trust_remote_code: bool
    token: str | None


@dataclass(frozen=True)
class HowToLoad:
    """What a caller asks of a load. Two that are equal make the same model of the same files."""

    dtype: str | None = None  # of the matrices; None: the files' own
    revision: str | None = None  # on the Hub: a branch, tag or commit
    weights: str | None = None  # how dense matrices are packed: "int8" or "int4"
    activations: str | None = None  # what packed matrices are multiplied by: "float32" or "int8"
    devices: int | str | None = None  # among which it is divided; "auto": the fewest on which it fits
    replicas: int | str | None = None  # of the model on this process' devices
    trust_remote_code: bool = False  # Python files in its folder may be run
    token: str | None = field(default=None, compare=False, repr=False)  # on the Hub; it makes no other model

    @classmethod
    def of(cls, options: dict[str, Any]) -> HowToLoad:
        """Return the value of a call's arguments.

        Raises:
            InputError: one of them is unknown.
        """
        known = {each.name for each in fields(cls)}
        if unknown := sorted(options.keys() - known):
            raise InputError(f"{unknown[0]}: expected one of {', '.join(sorted(known))} to load a model by.")
        return cls(**options)

    def said(self) -> dict[str, Any]:
        """Return what differs from the defaults, without the token: what another process needs to load the same."""
        plain = HowToLoad()
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.compare and getattr(self, each.name) != getattr(plain, each.name)
        }

    def arguments(self) -> LoadOptions:
        """Return the same as arguments of a call, with the token if there is one."""
        found = self.said()
        if self.token is not None:
            found["token"] = self.token
        return cast("LoadOptions", found)

    def alone(self, devices: int | str | None) -> HowToLoad:
        """Return how one replica is loaded, on N devices."""
        return replace(self, devices=devices, replicas=None)
