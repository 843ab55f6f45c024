"""Gemma on JAX, inside your own process, for LangChain.

    from langchain_gemma_jax import Sampling, engine

    served = engine().load("google/gemma-3-1b-it")
    for piece in engine().submit(served, prompt_ids, Sampling(max_tokens=64)):
        print(piece.text, end="")

Importing the package is cheap. It checks that the JAX release is sound, makes JAX keep compiled programs, and registers
the package with LangChain by its name. It imports nothing heavy, not even JAX: names that need more are imported at
their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_gemma_jax.compile_cache import install as _compile_cache
from langchain_gemma_jax.jax_check import refuse_faulty_jax
from langchain_gemma_jax.provider import register

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.answering.cut_off import CutOffError
    from langchain_gemma_jax.chat.asking.answer_grammar import UnpromisedWarning
    from langchain_gemma_jax.chat.asking.options import UnknownOptionWarning
    from langchain_gemma_jax.chat.calling.base_models import BaseModelWarning
    from langchain_gemma_jax.chat_model import ChatGemmaJax
    from langchain_gemma_jax.compile_cache.warning import CompileCacheWarning
    from langchain_gemma_jax.embeddings import GemmaJaxEmbeddings
    from langchain_gemma_jax.engine.api.engine import Engine
    from langchain_gemma_jax.engine.api.generation import Generation
    from langchain_gemma_jax.engine.api.process import configure, engine
    from langchain_gemma_jax.engine.api.report import Report
    from langchain_gemma_jax.engine.base.events import PromptRead, Tripped
    from langchain_gemma_jax.engine.base.guards import GuardWarning
    from langchain_gemma_jax.engine.base.ladders import Ladders
    from langchain_gemma_jax.engine.base.sampling_options import Sampling
    from langchain_gemma_jax.engine.base.settings import Settings
    from langchain_gemma_jax.engine.executables.warmup import Warmup
    from langchain_gemma_jax.engine.host.unused_accelerator import UnusedAcceleratorWarning
    from langchain_gemma_jax.engine.requests.request import Completion, FinishReason, Piece
    from langchain_gemma_jax.engine.residency.eviction_log import Evicted
    from langchain_gemma_jax.engine.residency.model_status import ModelStatus
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.errors import (
        ApiKeyError,
        BusyError,
        CancelledRequestError,
        CheckpointError,
        CheckpointNotFoundError,
        ClosedError,
        ConfigError,
        ContextLengthError,
        CorruptCheckpointError,
        DeadlineError,
        DeviceFailedError,
        DeviceMemoryError,
        DevicesError,
        EngineError,
        ForkedError,
        GatedModelError,
        GemmaJaxError,
        GuardError,
        HostLostError,
        HubError,
        InputError,
        InstallationError,
        MediaAccessError,
        MediaError,
        MediaLimitError,
        ModelNotOnHubError,
        OfflineError,
        ReentrantCallError,
        SchemaError,
        ServerError,
        ServerUnreachableError,
        TensorMismatchError,
        TokenizerError,
        UnknownModelError,
        UnreadableMediaError,
        UnsafeCheckpointError,
        UnsafeJaxError,
        UnsupportedModelError,
    )
    from langchain_gemma_jax.llms import GemmaJaxLLM
    from langchain_gemma_jax.models.configuration.model_config import ModelConfig
    from langchain_gemma_jax.models.loading.from_gemma import from_gemma
    from langchain_gemma_jax.models.loading.load import load as load_model
    from langchain_gemma_jax.models.loading.model import Model
    from langchain_gemma_jax.observe.jax_code.code_report import CodeReport
    from langchain_gemma_jax.observe.jax_code.guard import guard
    from langchain_gemma_jax.observe.metrics.collector import MetricsCollector, start_metrics_server
    from langchain_gemma_jax.observe.spans import trace_engine
    from langchain_gemma_jax.observe.webhook import Webhook
    from langchain_gemma_jax.provider import ProviderWarning
    from langchain_gemma_jax.routing import Calibration, Choice, Route, Signals

__version__ = "0.2.0"

__all__ = [
    "ApiKeyError",
    "BaseModelWarning",
    "BusyError",
    "Calibration",
    "CancelledRequestError",
    "ChatGemmaJax",
    "CheckpointError",
    "CheckpointNotFoundError",
    "Choice",
    "ClosedError",
    "CodeReport",
    "CompileCacheWarning",
    "Completion",
    "ConfigError",
    "ContextLengthError",
    "CorruptCheckpointError",
    "CutOffError",
    "DeadlineError",
    "DeviceFailedError",
    "DeviceMemoryError",
    "DevicesError",
    "Engine",
    "EngineError",
    "Evicted",
    "FinishReason",
    "ForkedError",
    "GatedModelError",
    "GemmaJaxEmbeddings",
    "GemmaJaxError",
    "GemmaJaxLLM",
    "Generation",
    "GuardError",
    "GuardWarning",
    "HostLostError",
    "HubError",
    "InputError",
    "InstallationError",
    "Ladders",
    "MediaAccessError",
    "MediaError",
    "MediaLimitError",
    "MetricsCollector",
    "Model",
    "ModelConfig",
    "ModelNotOnHubError",
    "ModelStatus",
    "OfflineError",
    "Piece",
    "PromptRead",
    "ProviderWarning",
    "ReentrantCallError",
    "Report",
    "Route",
    "Sampling",
    "SchemaError",
    "Served",
    "ServerError",
    "ServerUnreachableError",
    "Settings",
    "Signals",
    "TensorMismatchError",
    "TokenizerError",
    "Tripped",
    "UnknownModelError",
    "UnknownOptionWarning",
    "UnpromisedWarning",
    "UnreadableMediaError",
    "UnsafeCheckpointError",
    "UnsafeJaxError",
    "UnsupportedModelError",
    "UnusedAcceleratorWarning",
    "Warmup",
    "Webhook",
    "__version__",
    "configure",
    "engine",
    "from_gemma",
    "guard",
    "load_model",
    "start_metrics_server",
    "trace_engine",
]

# Public name -> the module below `langchain_gemma_jax` and the name there. The same as under TYPE_CHECKING above.
_LAZY = {
    "ApiKeyError": ("errors", "ApiKeyError"),
    "BaseModelWarning": ("chat.calling.base_models", "BaseModelWarning"),
    "BusyError": ("errors", "BusyError"),
    "Calibration": ("routing", "Calibration"),
    "CancelledRequestError": ("errors", "CancelledRequestError"),
    "ChatGemmaJax": ("chat_model", "ChatGemmaJax"),
    "CheckpointError": ("errors", "CheckpointError"),
    "CheckpointNotFoundError": ("errors", "CheckpointNotFoundError"),
    "Choice": ("routing", "Choice"),
    "ClosedError": ("errors", "ClosedError"),
    "CodeReport": ("observe.jax_code.code_report", "CodeReport"),
    "CompileCacheWarning": ("compile_cache.warning", "CompileCacheWarning"),
    "Completion": ("engine.requests.request", "Completion"),
    "ConfigError": ("errors", "ConfigError"),
    "ContextLengthError": ("errors", "ContextLengthError"),
    "CorruptCheckpointError": ("errors", "CorruptCheckpointError"),
    "CutOffError": ("chat.answering.cut_off", "CutOffError"),
    "DeadlineError": ("errors", "DeadlineError"),
    "DeviceFailedError": ("errors", "DeviceFailedError"),
    "DeviceMemoryError": ("errors", "DeviceMemoryError"),
    "DevicesError": ("errors", "DevicesError"),
    "Engine": ("engine.api.engine", "Engine"),
    "EngineError": ("errors", "EngineError"),
    "Evicted": ("engine.residency.eviction_log", "Evicted"),
    "FinishReason": ("engine.requests.request", "FinishReason"),
    "ForkedError": ("errors", "ForkedError"),
    "GatedModelError": ("errors", "GatedModelError"),
    "GemmaJaxEmbeddings": ("embeddings", "GemmaJaxEmbeddings"),
    "GemmaJaxError": ("errors", "GemmaJaxError"),
    "GemmaJaxLLM": ("llms", "GemmaJaxLLM"),
    "Generation": ("engine.api.generation", "Generation"),
    "GuardError": ("errors", "GuardError"),
    "GuardWarning": ("engine.base.guards", "GuardWarning"),
    "HostLostError": ("errors", "HostLostError"),
    "HubError": ("errors", "HubError"),
    "InputError": ("errors", "InputError"),
    "InstallationError": ("errors", "InstallationError"),
    "Ladders": ("engine.base.ladders", "Ladders"),
    "MediaAccessError": ("errors", "MediaAccessError"),
    "MediaError": ("errors", "MediaError"),
    "MediaLimitError": ("errors", "MediaLimitError"),
    "MetricsCollector": ("observe.metrics.collector", "MetricsCollector"),
    "Model": ("models.loading.model", "Model"),
    "ModelConfig": ("models.configuration.model_config", "ModelConfig"),
    "ModelNotOnHubError": ("errors", "ModelNotOnHubError"),
    "ModelStatus": ("engine.residency.model_status", "ModelStatus"),
    "OfflineError": ("errors", "OfflineError"),
    "Piece": ("engine.requests.request", "Piece"),
    "ReentrantCallError": ("errors", "ReentrantCallError"),
    "PromptRead": ("engine.base.events", "PromptRead"),
    "ProviderWarning": ("provider", "ProviderWarning"),
    "Report": ("engine.api.report", "Report"),
    "Route": ("routing", "Route"),
    "Sampling": ("engine.base.sampling_options", "Sampling"),
    "SchemaError": ("errors", "SchemaError"),
    "Served": ("engine.residency.served", "Served"),
    "ServerError": ("errors", "ServerError"),
    "ServerUnreachableError": ("errors", "ServerUnreachableError"),
    "Settings": ("engine.base.settings", "Settings"),
    "Signals": ("routing", "Signals"),
    "TensorMismatchError": ("errors", "TensorMismatchError"),
    "TokenizerError": ("errors", "TokenizerError"),
    "UnknownModelError": ("errors", "UnknownModelError"),
    "Tripped": ("engine.base.events", "Tripped"),
    "UnknownOptionWarning": ("chat.asking.options", "UnknownOptionWarning"),
    "UnpromisedWarning": ("chat.asking.answer_grammar", "UnpromisedWarning"),
    "UnreadableMediaError": ("errors", "UnreadableMediaError"),
    "UnsafeCheckpointError": ("errors", "UnsafeCheckpointError"),
    "UnsafeJaxError": ("errors", "UnsafeJaxError"),
    "UnsupportedModelError": ("errors", "UnsupportedModelError"),
    "UnusedAcceleratorWarning": ("engine.host.unused_accelerator", "UnusedAcceleratorWarning"),
    "Warmup": ("engine.executables.warmup", "Warmup"),
    "Webhook": ("observe.webhook", "Webhook"),
    "configure": ("engine.api.process", "configure"),
    "from_gemma": ("models.loading.from_gemma", "from_gemma"),
    "guard": ("observe.jax_code.guard", "guard"),
    "load_model": ("models.loading.load", "load"),
    "start_metrics_server": ("observe.metrics.collector", "start_metrics_server"),
    "trace_engine": ("observe.spans", "trace_engine"),
}

refuse_faulty_jax()
import_module(f"{__name__}.ancestry")  # now, so that it detects every later fork
_compile_cache.install()
register()


def __getattr__(name: str) -> object:
    if name == "engine":  # the package itself, which can be called: see engine/__init__.py
        return import_module(f"{__name__}.engine")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _LAZY[name]
    if module == "errors":  # a caller that imports an error expects it to be LangChain's too
        import_module(f"{__name__}.model_errors")
    value: object = getattr(import_module(f"{__name__}.{module}"), original)
    globals()[name] = value  # later uses do not call this function
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
