"""Facts for LangSmith's tracing: a call's model and settings, given before it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models.base import LangSmithParams

from langchain_gemma_jax.provider import PROVIDER


def tracing_params(setting: Callable[[str], Any]) -> LangSmithParams:
    """Return the parameters of tracing. ``setting`` gives the call's setting of a name."""
    params = LangSmithParams(ls_provider=PROVIDER, ls_model_type="chat", ls_model_name=setting("model"))
    if (temperature := setting("temperature")) is not None:
        params["ls_temperature"] = temperature
    if (max_tokens := setting("max_tokens")) is not None:
        params["ls_max_tokens"] = max_tokens
    if stop := setting("stop"):
        params["ls_stop"] = stop
    return params
