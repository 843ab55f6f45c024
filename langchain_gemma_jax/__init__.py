"""Gemma on JAX, inside your own process, for LangChain.

    from langchain_gemma_jax import load_model

    model = load_model("google/gemma-3-1b-it")

Importing the package is cheap: it checks that JAX is a sound release and imports nothing heavy, not
even JAX. Names that need more are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_gemma_jax._jax_check import refuse_faulty_jax
from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ConfigError,
    CorruptCheckpointError,
    GatedModelError,
    GemmaJaxError,
    HubError,
    InputError,
    InstallationError,
    ModelNotOnHubError,
    OfflineError,
    TensorMismatchError,
    TokenizerError,
    UnsafeCheckpointError,
    UnsafeJaxError,
    UnsupportedModelError,
)

if TYPE_CHECKING:
    from langchain_gemma_jax.models.config import ModelConfig
    from langchain_gemma_jax.models.from_gemma import from_gemma
    from langchain_gemma_jax.models.load import load as load_model
    from langchain_gemma_jax.models.model import Model

__version__ = "0.1.0.dev0"

__all__ = [
    "CheckpointError",
    "CheckpointNotFoundError",
    "ConfigError",
    "CorruptCheckpointError",
    "GatedModelError",
    "GemmaJaxError",
    "HubError",
    "InputError",
    "InstallationError",
    "Model",
    "ModelConfig",
    "ModelNotOnHubError",
    "OfflineError",
    "TensorMismatchError",
    "TokenizerError",
    "UnsafeCheckpointError",
    "UnsafeJaxError",
    "UnsupportedModelError",
    "__version__",
    "from_gemma",
    "load_model",
]

# Public name -> the module below `langchain_gemma_jax` and the name there. The same as under TYPE_CHECKING above.
_LAZY = {
    "Model": ("models.model", "Model"),
    "ModelConfig": ("models.config", "ModelConfig"),
    "from_gemma": ("models.from_gemma", "from_gemma"),
    "load_model": ("models.load", "load"),
}

refuse_faulty_jax()


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _LAZY[name]
    value: object = getattr(import_module(f"{__name__}.{module}"), original)
    globals()[name] = value  # the next use does not come here again
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
