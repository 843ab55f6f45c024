"""The options of loading a model: one value, passed from the chat model down to the files."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict, cast

from langchain_gemma_jax.errors import InputError

DTYPES = ("bfloat16", "float32", "float16")
WEIGHTS = ("int8", "int4")
ACTIVATIONS = ("float32", "int8")
CACHE_DTYPES = ("int8",)


class LoadOptions(TypedDict, total=False):
    """The fields of ``HowToLoad`` as arguments of a call."""

    dtype: str | None
    revision: str | None
    weights: str | None
    activations: str | None
    cache_dtype: str | None
    devices: int | str | None
    replicas: int | str | None
    drafter: str | None
    trust_remote_code: bool
    token: str | None


@dataclass(frozen=True)
class HowToLoad:
    """A caller's options of a load. Equal ones load the same model from the same files."""

    dtype: str | None = None  # of the matrices; None: the files' own
    revision: str | None = None  # on the Hub: a branch, tag or commit
    weights: str | None = None  # how dense matrices are packed: "int8" or "int4"
    activations: str | None = None  # the type of what packed matrices are multiplied by: "float32" or "int8"
    cache_dtype: str | None = None  # "int8": keys and values of global layers are rounded; None: they are not
    devices: int | str | None = None  # number that it is divided among; "auto": the fewest on which it fits
    replicas: int | str | None = None  # of the model on this process' devices
    drafter: str | None = None  # a folder or an id on the Hub; "off": none. None: the one beside the model, if any
    trust_remote_code: bool = False  # True: Python files in its folder may be run
    token: str | None = field(default=None, compare=False, repr=False)  # on the Hub; it does not change the model

    @classmethod
    def of(cls, options: dict[str, Any]) -> HowToLoad:
        """Return the options in a call's arguments.

        Raises:
            InputError: one of them is unknown.
        """
        known = {each.name for each in fields(cls)}
        if unknown := sorted(options.keys() - known):
            raise InputError(f"{unknown[0]}: expected one of {', '.join(sorted(known))} to load a model by.")
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, but not the token, for a process that loads the same."""
        plain = HowToLoad()
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.compare and getattr(self, each.name) != getattr(plain, each.name)
        }

    def arguments(self) -> LoadOptions:
        """Return the options as arguments of a call, with the token if there is one."""
        options = self.to_dict()
        if self.token is not None:
            options["token"] = self.token
        return cast("LoadOptions", options)

    def alone(self, devices: int | str | None) -> HowToLoad:
        """Return the options of loading one replica on ``devices`` devices."""
        return replace(self, devices=devices, replicas=None)
