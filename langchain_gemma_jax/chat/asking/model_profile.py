"""What each published size can do, for those who ask before they call."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.language_models import ModelProfile

from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.embedded import CONTEXT, embedded_folder


def profile_of(model: str, max_context: int | None = None) -> ModelProfile:
    """Return what is known of a model by its name. How much it reads is known of embedded and published sizes only."""
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
    context = known()[size].max_context if size is not None else None
    if embedded_folder(model) is not None:
        context = CONTEXT
    limits = [each for each in (context, max_context) if each is not None]
    if limits:
        profile["max_input_tokens"] = profile["max_output_tokens"] = min(limits) - 1
    if context is not None:
        profile["reasoning_output"] = size is not None and size.startswith("gemma-4")
    return profile


def profile_of_all(models: Iterable[str], max_context: int | None = None) -> ModelProfile:
    """Return what every one of several models can do, as nobody knows beforehand which of them answers."""
    profiles = [profile_of(model, max_context) for model in models]
    found = ModelProfile(**{**profiles[0], "name": "auto"})
    limits = [profile.get("max_input_tokens") for profile in profiles]
    known = [limit for limit in limits if limit is not None]
    if len(known) == len(limits):
        found["max_input_tokens"] = found["max_output_tokens"] = min(known)
    else:
        found.pop("max_input_tokens", None)
        found.pop("max_output_tokens", None)
    found["reasoning_output"] = all(profile.get("reasoning_output", False) for profile in profiles)
    return found
