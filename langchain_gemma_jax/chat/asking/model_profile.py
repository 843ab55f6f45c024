"""Profiles of models: what each published size can do, for callers that look before they call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from langchain_core.language_models import ModelProfile

from langchain_gemma_jax.models.configuration.catalog import known, senses_of_config, senses_of_size
from langchain_gemma_jax.models.configuration.embedded import CONTEXT, embedded_folder
from langchain_gemma_jax.models.configuration.hf_config import PREFIXED, config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.torchax.asked import PREFIX as TORCHAX

_BY_SENSES = (
    "image_inputs", "image_url_inputs", "image_tool_message", "pdf_inputs", "pdf_tool_message", "audio_inputs",
    "attachment",
)  # fmt: skip
_LATER_SYSTEM = "mid_conversation_system_messages"


def profile_of(model: str, max_context: int | None = None) -> ModelProfile:
    """Return what is known of a model by its folder's configuration, or by its name."""
    name = model.rstrip("/").rpartition("/")[2].lower()
    size = max((size for size in known() if name.startswith(size)), key=len, default=None)
    profile = ModelProfile(
        name=model,
        open_weights=True,
        text_inputs=True,
        image_inputs=False,
        image_url_inputs=False,
        pdf_inputs=False,
        audio_inputs=False,
        video_inputs=False,
        image_tool_message=False,
        pdf_tool_message=False,
        text_outputs=True,
        image_outputs=False,
        audio_outputs=False,
        video_outputs=False,
        tool_calling=True,
        tool_call_streaming=True,
        tool_choice=True,
        structured_output=True,
        attachment=False,
        temperature=True,
    )
    if _LATER_SYSTEM in ModelProfile.__annotations__:  # of newer releases: older ones warn of what they do not know
        profile["mid_conversation_tools"] = False
        if not model.startswith(TORCHAX):  # whose own template may refuse one
            profile["mid_conversation_system_messages"] = True
    config = _configuration(model) or (None if size is None else known()[size])
    context = None if config is None else config.max_context
    if embedded_folder(model) is not None:
        context = CONTEXT
    _tell_senses(profile, model, size)
    limits = [each for each in (context, max_context) if each is not None]
    if limits:
        profile["max_input_tokens"] = profile["max_output_tokens"] = min(limits) - 1
    if context is not None:
        profile["reasoning_output"] = config is not None and config.generation == "gemma4"
    return profile


def _tell_senses(profile: ModelProfile, model: str, size: str | None) -> None:
    """Enter in the profile whether a model reads images and sounds: by its folder, or by its published size."""
    try:
        here = Path(model).expanduser()
        path = here / "config.json"
        if path.is_file():
            raw = read_object(path, path)
            kinds = senses_of_config(raw)
            _tell_turns(profile, raw)
        elif here.exists():  # a GGUF file, or a folder of some: what lies beside it sees and hears
            from langchain_gemma_jax.models.encoders.mmproj_inputs import mmproj_inputs  # which needs NumPy

            kinds = mmproj_inputs(here)
        else:
            kinds = frozenset() if size is None else senses_of_size(size)
            if kinds and (":" in model or "gguf" in model.lower()):
                # A GGUF file that is not here yet. Its repository may have an mmproj file, or none: say nothing.
                for name in _BY_SENSES:
                    cast("dict[str, bool]", profile).pop(name)
                return
    except Exception:  # noqa: BLE001  a profile promises nothing: what is wrong with a folder is said when it is loaded
        return
    sees, hears = "image" in kinds, "audio" in kinds
    profile["image_inputs"] = profile["image_tool_message"] = profile["image_url_inputs"] = sees
    profile["pdf_inputs"] = profile["pdf_tool_message"] = sees
    profile["audio_inputs"] = hears
    profile["attachment"] = sees or hears


def _tell_turns(profile: ModelProfile, raw: Mapping[str, object]) -> None:
    """Enter in the profile that a model has neither turns nor tools, if it is of this kind."""
    if raw.get("model_type") == PREFIXED:
        for name in ("tool_calling", "tool_call_streaming", "tool_choice", "structured_output", _LATER_SYSTEM):
            if name in profile:
                cast("dict[str, bool]", profile)[name] = False


def _configuration(model: str) -> ModelConfig | None:
    """Return the configuration in a model's folder; None if it is in none, or if that cannot be read here and now."""
    try:
        # One small file. Where an event loop's guard refuses even that, the profile says less.
        path = Path(model).expanduser() / "config.json"
        return config_from_hf(read_object(path, path), str(path)) if path.is_file() else None
    except Exception:  # noqa: BLE001  a profile promises nothing: what is wrong with a folder is said when it is loaded
        return None


def profile_of_all(models: Iterable[str], max_context: int | None = None) -> ModelProfile:
    """Return what all of several models can do: any of them may answer."""
    profiles = [profile_of(model, max_context) for model in models]
    found = ModelProfile(**{**profiles[0], "name": "auto"})
    limits = [profile.get("max_input_tokens") for profile in profiles]
    known = [limit for limit in limits if limit is not None]
    if len(known) == len(limits):
        found["max_input_tokens"] = found["max_output_tokens"] = min(known)
    else:
        found.pop("max_input_tokens", None)
        found.pop("max_output_tokens", None)
    senses = {name: all(profile.get(name, False) for profile in profiles) for name in _BY_SENSES}
    cast("dict[str, bool]", found).update(senses)
    if _LATER_SYSTEM in found:
        found["mid_conversation_system_messages"] = all(profile.get(_LATER_SYSTEM, False) for profile in profiles)
    found["reasoning_output"] = all(profile.get("reasoning_output", False) for profile in profiles)
    return found
