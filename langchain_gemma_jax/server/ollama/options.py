"""Ollama's ``options``: each is a setting of this package, or is named as one without an effect, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.fields import as_object
from langchain_gemma_jax.server.ollama.notes import Notes
from langchain_gemma_jax.settings.table import checked_setting

SETTINGS: Mapping[str, str] = {  # by Ollama's names
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repeat_penalty": "repetition_penalty",
    "num_predict": "max_tokens",
    "num_ctx": "max_context",
}
_UNLIMITED = (-1, -2)  # num_predict: for ever, and until the context is full
_ITSELF = "the engine finds that out itself"
NO_EFFECT: Mapping[str, str] = {  # on an answer, and the reason why
    "num_gpu": "JAX_PLATFORMS says where the server runs",
    "main_gpu": "JAX_PLATFORMS says where the server runs",
    "num_thread": _ITSELF,
    "num_batch": _ITSELF,
    "numa": _ITSELF,
    "low_vram": _ITSELF,
    "f16_kv": _ITSELF,
    "use_mmap": _ITSELF,
    "use_mlock": _ITSELF,
    "num_keep": "nothing of a conversation is ever dropped",
    "logits_all": "it asks for nothing that an answer has",
    "vocab_only": "models are loaded whole",
    "embedding_only": "models are loaded whole",
    "mirostat_tau": "mirostat is off",
    "mirostat_eta": "mirostat is off",
}
_OFF: Mapping[str, tuple[object, str]] = {  # methods that are not here: the values that switch them off, and advice
    "mirostat": (0, "take temperature, top_p or min_p"),
    "tfs_z": (1, "take top_p or min_p"),
    "typical_p": (1, "take top_p or min_p"),
    "penalize_newline": (True, "here a line's end counts as any token does"),
}
_LAST_N = "repeat_last_n"
KNOWN = {*SETTINGS, *NO_EFFECT, *_OFF, _LAST_N}


def settings_of_options(options: object, notes: Notes) -> dict[str, Any]:
    """Return the settings that Ollama's options stand for, by this package's names.

    Raises:
        InputError: an option is unknown, has an impossible value, or would change answers in a way that is not here.
    """
    given = {name: value for name, value in as_object(options or {}, "options").items() if value is not None}
    if unknown := sorted(set(given) - KNOWN):
        raise InputError(
            f"options.{unknown[0][:100]}: this server knows no such option. Leave it out. It knows: "
            f"{', '.join(sorted(KNOWN))}."
        )
    found = {ours: _setting(name, given[name]) for name, ours in SETTINGS.items() if name in given}
    for name, (off, advice) in _OFF.items():
        if name in given and (given[name] != off or isinstance(given[name], bool) != isinstance(off, bool)):
            raise InputError(
                f"options.{name}: expected {off!r}, as this is not here: {advice}. Found {_shown(given[name])}."
            )
    for name, why in NO_EFFECT.items():
        if name in given:
            notes.add(f"options.{name} has no effect: {why}.")
    return {name: value for name, value in (found | _repeated(given, notes)).items() if value is not None}


def _setting(name: str, value: object) -> object:
    """Return one option's value as the setting is stored; None: what the setting is by default."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if (name == "seed" and whole and value == -1) or (name == "num_predict" and whole and value in _UNLIMITED):
        return None
    try:
        return checked_setting(SETTINGS[name], value)
    except InputError as error:
        raise InputError(f"options.{name}: {error}") from None


def _repeated(given: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """Return the setting of penalties for repeated tokens, if ``repeat_last_n`` changes it.

    Raises:
        InputError: only some of the last tokens are to count.
    """
    last = given.get(_LAST_N)
    if last is None or last == -1:  # all tokens count, as they do here
        return {}
    if isinstance(last, bool) or not isinstance(last, int) or last < -1:
        raise InputError(f"options.{_LAST_N}: expected -1 for all tokens, or 0 for none; found {_shown(last)}.")
    if last == 0:
        return {"repetition_penalty": 1.0}
    if given.get("repeat_penalty", 1) != 1:
        raise InputError(
            f"options.{_LAST_N}: expected -1, as repeat_penalty looks at all tokens of a conversation; found {last}."
        )
    notes.add(f"options.{_LAST_N} has no effect: no repeat_penalty is asked for.")
    return {}


def _shown(value: object) -> str:
    return f"{value!r:.60}"
