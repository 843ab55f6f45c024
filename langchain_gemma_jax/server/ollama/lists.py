"""Ollama's lists and descriptions: the models that there are, those in memory, one model, the version."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.server.apis.caller import Caller, ServedModels
from langchain_gemma_jax.server.apis.fields import as_truth, refuse_unknown
from langchain_gemma_jax.server.ollama.facts import FileFacts, facts_of
from langchain_gemma_jax.server.ollama.forms import LINES, NEVER, time_text
from langchain_gemma_jax.server.ollama.names import is_here, meant, name_in

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.model_status import ModelStatus

SPOKEN = "0.13.0"  # the version of Ollama whose API this is: programs ask for it, and refuse old ones


def tags(models: ServedModels) -> dict[str, Any]:
    """Return the models of a server: those that it was started with, and, if it loads others, those on this machine."""
    listed = dict.fromkeys(models.names)
    if models.others:
        from langchain_gemma_jax.models.gguf.local_files import local_files

        listed |= dict.fromkeys(each.source for each in local_files() if each.is_gemma)
    return {"models": [_listed(facts_of(name)) for name in listed]}


def in_memory(models: ServedModels) -> dict[str, Any]:
    """Return the models in memory. Where callers may not name others, those of the server alone."""
    from langchain_gemma_jax.engine.api.process import engine

    found = {name: engine().status(name, **models.how.arguments()) for name in models.names}
    shown = {name: status for name, status in found.items() if status is not None and status.resident}
    if models.others:
        known = {status.name for status in shown.values()}
        shown |= {each.name: each for each in engine().models() if each.resident and each.name not in known}
    return {"models": [_resident(facts_of(name), status) for name, status in shown.items()]}


def version(_: ServedModels) -> dict[str, Any]:
    """Return the version of the API that is spoken, and that of this package."""
    ours = getattr(sys.modules.get("langchain_gemma_jax"), "__version__", "")
    return {"version": SPOKEN, "server": f"langchain-gemma-jax {ours}"}


PAGES: Mapping[str, Callable[[ServedModels], dict[str, Any]]] = {
    "/api/tags": tags,
    "/api/ps": in_memory,
    "/api/version": version,
}
"""The paths that are read by GET."""


class OllamaShow:
    """Descriptions of models, by ``/api/show``."""

    streams_as = LINES  # nothing is streamed

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]]:
        """Return what is known of a model without loading it.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnknownModelError: the model is not served.
        """
        refuse_unknown(body, ("model", "name", "verbose"))
        as_truth(body.get("verbose"), "verbose")
        model = meant(caller.models, name_in(body))
        if model not in caller.models.names and not is_here(model):
            from langchain_gemma_jax.models.loading.model_names import check_name

            check_name(model)
        return in_thread(_described, model)


def _described(model: str) -> dict[str, Any]:
    facts = facts_of(model)
    family = facts.family or "unknown"
    info: dict[str, Any] = {"general.architecture": family, "general.parameter_count": facts.parameters}
    if facts.context is not None:
        info[f"{family}.context_length"] = facts.context
    return {
        "modelfile": f"FROM {model}\n",
        "parameters": "\n".join(f"{name:30} {value}" for name, value in facts.sampling.items()),
        "template": "",  # a chat format is code here, and none of Ollama's templates
        "details": facts.details,
        "model_info": info,
        "capabilities": facts.capabilities,
        "modified_at": time_text(facts.modified),
    }


def _listed(facts: FileFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "model": facts.name,
        "modified_at": time_text(facts.modified),
        "size": facts.nbytes,
        "digest": facts.digest,
        "details": facts.details,
    }


def _resident(facts: FileFacts, status: ModelStatus) -> dict[str, Any]:
    stays = status.keep_alive
    found = {name: value for name, value in _listed(facts).items() if name != "modified_at"} | {
        "size": status.nbytes,
        "size_vram": status.nbytes if _on_accelerator() else 0,
        "expires_at": NEVER if stays is None else time_text(time.time() + max(0.0, stays - status.idle_s)),
    }
    return found if facts.context is None else found | {"context_length": facts.context}


def _on_accelerator() -> bool:
    import jax

    return bool(jax.default_backend() != "cpu")
