"""Registration with LangChain under the name ``gemma_jax``.

    init_chat_model("gemma_jax:google/gemma-3-4b-it")
    create_agent("gemma_jax:sprout-m", tools)

LangChain has a private table of providers, and no public way to add one. The package adds a row to it as soon as
LangChain is imported. If the table has moved, there is one warning, and everything else works.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, MutableMapping
from importlib import import_module
from typing import Any

from langchain_gemma_jax.when_imported import when_imported

PROVIDER = "gemma_jax"
MADE_BY = ("langchain_gemma_jax", "ChatGemmaJax")  # by name, as LangChain imports it
WHERE = "langchain.chat_models.base"
SEARCHING = "langchain.agents.middleware.provider_tool_search"


class ProviderWarning(UserWarning):
    """LangChain does not find this package by its name: pass it a ``ChatGemmaJax`` instead of a string."""


def register() -> None:
    """Register the provider with LangChain, now or as soon as LangChain is imported."""
    when_imported(WHERE, _add)
    when_imported(SEARCHING, _add_tool_search)


def _add() -> None:
    module = sys.modules[WHERE]
    table, supported = getattr(module, "_BUILTIN_PROVIDERS", None), getattr(module, "_SUPPORTED_PROVIDERS", None)
    if isinstance(table, MutableMapping) and all(isinstance(line, tuple) and len(line) == 3 for line in table.values()):
        table.setdefault(PROVIDER, (*MADE_BY, _made))
    elif isinstance(supported, set) and callable(helper := getattr(module, "_init_chat_model_helper", None)):
        supported.add(PROVIDER)  # before LangChain 1.2.10
        module._init_chat_model_helper = _before(helper)  # type: ignore[attr-defined]  # noqa: SLF001
    else:
        warnings.warn(
            f'This LangChain finds no model as "{PROVIDER}:...": its table of providers is not where it was. Pass a '
            "ChatGemmaJax(model=...) instead of a string, and look for a newer langchain-gemma-jax.",
            ProviderWarning,
            stacklevel=2,
        )


def _add_tool_search() -> None:
    """Have LangChain's middleware for deferred tools leave the search to this package, as it does for two others."""
    table = getattr(sys.modules[SEARCHING], "_SERVER_TOOL_SEARCH_TOOLS", None)
    if isinstance(table, MutableMapping):
        table.setdefault(PROVIDER, {"type": "tool_search"})
    else:
        warnings.warn(
            "ProviderToolSearchMiddleware of this LangChain knows nothing of this package. Leave it out, and mark the "
            'tools: extras={"defer_loading": True}.',
            ProviderWarning,
            stacklevel=2,
        )


def _made(cls: Callable[..., Any], **settings: Any) -> Any:
    return cls(**settings)


def _before(helper: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap LangChain's function that makes models, so that it makes ours too."""

    def make(model: str, *, model_provider: str | None = None, **settings: Any) -> Any:
        named, _, rest = model.partition(":")
        if model_provider is None and named == PROVIDER:
            model_provider, model = PROVIDER, rest
        if model_provider is None or model_provider.replace("-", "_").lower() != PROVIDER:
            return helper(model, model_provider=model_provider, **settings)
        return _made(getattr(import_module(MADE_BY[0]), MADE_BY[1]), model=model, **settings)

    return make
