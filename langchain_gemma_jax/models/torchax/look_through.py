"""The look at a model before its weights are read: what its layers keep, and how they attend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.model_config import CacheLayout
from langchain_gemma_jax.models.torchax.meta_module import MetaModule, most_context
from langchain_gemma_jax.models.torchax.own_attention import KeptShapes, OwnLayoutPass, layout_of
from langchain_gemma_jax.models.torchax.traced_pass import AttentionKind, LayoutPass, now

_PROBE = 8  # tokens of the call that shows what a model's layers ask for
_STATES = ("linear_attention", "recurrent", "mamba", "mamba2", "conv", "rglru", "ssm", "hybrid")


@dataclass(frozen=True)
class SeenModel:
    """The facts that one call of a model without numbers shows."""

    layout: CacheLayout
    kinds: tuple[AttentionKind, ...]  # of its attentions, in the order of their calls
    shapes: tuple[KeptShapes, ...]  # what each layer keeps, where it attends by its own code
    heads: int
    width: int  # of its hidden states
    vocab_size: int


def look_through(meta: MetaModule) -> SeenModel:
    """Call a model once without numbers; return what was seen.

    Raises:
        UnsupportedModelError: its cache is no keys and values of a fixed size for each token.
    """
    kind, torch = meta.module.config, meta.libraries.torch
    _refuse_states(meta)
    layers = int(kind.num_hidden_layers)
    own = OwnLayoutPass(torch, _PROBE)
    asked = LayoutPass(torch, most_context(kind), slots=_PROBE)
    token = now.set(own if meta.attends_itself else asked)
    try:
        with naming(meta), meta.libraries.alone(), meta.libraries.trusting(), torch.device("meta"), torch.no_grad():
            ids = torch.zeros((1, _PROBE), dtype=torch.long)
            hidden = meta.states({}, ids, torch.arange(_PROBE)[None])
            scores = meta.scores({}, hidden[:, :1], ids[:, :1])
            width, vocab_size = int(hidden.shape[-1]), int(scores.shape[-1])
            if meta.attends_itself:
                shapes = own.shapes(layers)
                heads = int(kind.num_attention_heads)
                return SeenModel(layout_of(shapes), (), shapes, heads, width, vocab_size)
            return SeenModel(asked.layout(layers), asked.kinds(), (), asked.heads, width, vocab_size)
    finally:
        now.reset(token)


@contextmanager
def naming(meta: MetaModule) -> Iterator[None]:
    """Turn every error of a model's code into one that says that the model cannot be served, and why."""
    name = type(meta.module).__name__
    try:
        yield
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{name} cannot be served: {error}") from error
    except Exception as error:  # the model's own code can raise anything
        raise UnsupportedModelError(f"{name} cannot be served: {_in_words(error)}") from error


def _in_words(error: Exception) -> str:
    import jax

    if isinstance(error, jax.errors.ConcretizationTypeError) or "meta tensor" in str(error):
        return (
            "its code decides by a number that it computes from the text, and a compiled program has no numbers "
            f"until it runs ({type(error).__name__})."
        )
    return f"its code ends with {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _refuse_states(meta: MetaModule) -> None:
    """Refuse a model whose configuration says that layers keep a state.

    Raises:
        UnsupportedModelError: some do.
    """
    kind: Any = meta.module.config
    types = list(getattr(kind, "layer_types", None) or getattr(kind, "layers_block_type", None) or ())
    kept = sorted({str(each) for each in types if str(each) in _STATES})
    if kept:
        raise UnsupportedModelError(
            f"{type(meta.module).__name__} cannot be served: its layers of the type {', '.join(kept)} keep a state of "
            "a recurrence or a convolution, which a conversation can neither share nor take back, and here a layer "
            "keeps keys and values."
        )
