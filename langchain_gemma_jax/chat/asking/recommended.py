"""The sampling settings that a checkpoint's authors recommend in its ``generation_config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import ConfigError, InputError

_READ = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


def recommended_sampling(defaults: Mapping[str, object], name: str) -> Sampling:
    """Return the settings that a ``generation_config.json`` recommends: without ``do_sample``, the length alone.

    Raises:
        ConfigError: one of them is not possible. ``name`` is the model's.
    """
    found: dict[str, object] = {} if (most := defaults.get("max_new_tokens")) is None else {"max_tokens": most}
    if defaults.get("do_sample") is True:
        found |= {"temperature": 1.0} | {name: defaults[name] for name in _READ if defaults.get(name) is not None}
    try:
        # Each model's are checked once, and not in each call. Nothing but numbers is possible.
        numbers = all(isinstance(value, int | float) for value in found.values())
        return _checked(**found) if numbers else Sampling(**found)  # type: ignore[arg-type]
    except InputError as error:
        raise ConfigError(f"{name}, generation_config.json: {error} Repair the file.") from error


@lru_cache(maxsize=64, typed=True)  # True is no number here, and equal to 1
def _checked(**values: object) -> Sampling:
    return Sampling(**values)  # type: ignore[arg-type]
