"""A transformers model without weights: what its parameters are, what its layers keep, and how it is called."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.torchax.libraries import ATTENTION, TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode
from langchain_gemma_jax.models.torchax.traced_pass import LayoutPass, NoPass, PassCache, now

EXPERTS = "batched_mm"  # the one way to run experts whose shapes do not depend on what the router chose
_FIXED_BY_LENGTH = ("dynamic", "longrope")  # ropes that change when a text becomes long
_ANSWER = "MoeModelOutputWithPast"  # of transformers: what a head is given in the place of its body's answer
_PROBE = 8  # tokens, with which a model is called to see what it asks for

_given: ContextVar[Any] = ContextVar("given", default=None)  # hidden states, in the place of what the body would say


@dataclass(frozen=True)
class MetaModule:
    """A model of a configuration, whose tensors have shapes and nothing in them."""

    libraries: TorchLibraries
    module: Any
    prefix: str  # of the names of what belongs to its body: all but its head

    @property
    def body(self) -> Any:
        return self.module.base_model

    @cached_property
    def specs(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name, shape and dtype of every parameter and buffer. What two names stand for has the first one's."""
        return tuple((name, tuple(value.shape), _dtype(value)) for name, value in named_tensors(self.module))

    @property
    def plan(self) -> Mapping[str, str]:
        """Patterns of names, and in which style each is divided among devices: the model's own plan, if it has one."""
        body = getattr(self.module.config, "base_model_tp_plan", None) or {}
        head = getattr(type(self.module), "_tp_plan", None) or {}
        return {f"{self.prefix}{pattern}": str(style) for pattern, style in body.items()} | dict(head)

    def states(self, params: Mapping[str, Any], ids: Any, positions: Any) -> Any:
        """Return the last hidden states ``[row, token, width]``. The pass in ``now`` takes part."""
        parameters = inspect.signature(type(self.body).forward).parameters
        cache = "cache" if "cache" in parameters else "past_key_values"
        asked = {"input_ids": ids, "position_ids": positions, cache: PassCache(), "use_cache": True}
        own = {name.removeprefix(self.prefix): each for name, each in params.items() if name.startswith(self.prefix)}
        return self._call(self.body, own, asked).last_hidden_state

    def scores(self, params: Mapping[str, Any], hidden: Any, ids: Any) -> Any:
        """Return the scores of the next token for hidden states: all that the model does behind its body."""
        token = _given.set(hidden)
        try:
            return self._call(self.module, dict(params), {"input_ids": ids, "use_cache": False}).logits
        finally:
            _given.reset(token)

    def _call(self, module: Any, params: dict[str, Any], asked: dict[str, Any]) -> Any:
        return self.libraries.torch.func.functional_call(module, params, (), asked, tie_weights=True)


@lru_cache(maxsize=4)
def meta_module(config: str, dtype: str, code: RemoteCode | None = None) -> MetaModule:
    """Return the model of a configuration, by its JSON; with ``code``, by that.

    Raises:
        InstallationError: the libraries are not there. UnsupportedModelError: transformers has no such model.
    """
    found = libraries()
    with found.alone():
        kind = configuration(found, json.loads(config), code)
        torch = found.torch
        with torch.device("meta"), quiet():
            try:
                module = found.transformers.AutoModelForCausalLM.from_config(
                    kind, dtype=getattr(torch, dtype), trust_remote_code=code is not None, **HOW_TO_RUN
                )
            except KeyError as error:
                raise _own_attentions(kind.model_type, error) from error
            except (ValueError, ImportError, TypeError) as error:
                raise UnsupportedModelError(
                    f"transformers makes no model of this configuration ({kind.model_type}) that can be run here: "
                    f"{' '.join(str(error).split())[:300]}"
                ) from error
        module.eval()
        fix_lengths(module)
        body = module.base_model
        if body is module:
            raise UnsupportedModelError(f"{type(module).__name__}: expected a body with a head on it, found no body.")
        _let_given_through(body)
        return MetaModule(found, module, f"{module.base_model_prefix}.")


def _own_attentions(kind: str, error: KeyError) -> UnsupportedModelError:
    if error.args == (ATTENTION,):
        what = "its code in transformers has a list of attentions of its own, which takes no other"
    else:
        what = f"its code in transformers looks for {error.args[0]!r:.100} and does not find it"
    return UnsupportedModelError(f"A model of the kind {kind!r} cannot be served: {what}.")


HOW_TO_RUN: Mapping[str, str] = {"attn_implementation": ATTENTION, "experts_implementation": EXPERTS}


def knows(kind: object) -> bool:
    """Return whether transformers has a kind of model, by its ``model_type``."""
    from transformers import CONFIG_MAPPING

    return isinstance(kind, str) and kind in CONFIG_MAPPING


def configuration(found: TorchLibraries, raw: Mapping[str, object], code: RemoteCode | None = None) -> Any:
    """Return transformers' object for a configuration; with ``code``, that one's.

    Raises:
        ConfigError: it has no such kind, or cannot read it.
    """
    from transformers import CONFIG_MAPPING

    kind = raw.get("model_type")
    if code is not None:
        try:
            return found.transformers.AutoConfig.from_pretrained(
                code.folder, trust_remote_code=code is not None, local_files_only=True
            )
        except Exception as error:  # whatever somebody's code does
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise ConfigError(f"config.json: the model's own code cannot read it: {told}") from error
    if not isinstance(kind, str) or not knows(kind):
        raise ConfigError(
            f"config.json: expected a model_type that transformers {found.transformers.__version__} has, found "
            f"{kind!r}. A newer one needs a newer transformers, and that a newer release of this package."
        )
    try:
        return CONFIG_MAPPING[kind].from_dict(dict(raw))
    except Exception as error:
        raise ConfigError(f"config.json: transformers cannot read it: {' '.join(str(error).split())[:300]}") from error


def fix_lengths(module: Any) -> None:
    """Have ropes that change with the length of a text stay as they are for short ones."""
    for each in module.modules():
        kind = getattr(each, "rope_type", None)
        if isinstance(kind, str) and kind in _FIXED_BY_LENGTH:
            each.rope_type = "default"
        elif isinstance(kind, dict):
            each.rope_type = {name: "default" if one in _FIXED_BY_LENGTH else one for name, one in kind.items()}


def most_context(kind: Any) -> int:
    """Return how many tokens a model can read: as many as its rope was made for, where that would change later."""
    most = int(kind.max_position_embeddings)
    rope = getattr(kind, "rope_parameters", None) or {}
    for each in (rope, *(inner for inner in rope.values() if isinstance(inner, dict))):
        if each.get("rope_type") in _FIXED_BY_LENGTH:
            most = min(most, int(each.get("original_max_position_embeddings") or most))
    return most


def named_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """Every parameter and buffer with its name, each once."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def look_through(meta: MetaModule, layers: int) -> tuple[LayoutPass, int, int]:
    """Return what its layers keep and ask for, how wide its states are, and how many scores it gives.

    Raises:
        UnsupportedModelError: its cache cannot be made static. The message says what was tried.
    """
    torch, seen = meta.libraries.torch, LayoutPass(meta.libraries.torch)
    token = now.set(seen)
    tried = (
        "It was called with a cache of fixed size and an attention of this package, the way that transformers offers "
        "(AttentionInterface)."
    )
    try:
        with meta.libraries.alone(), torch.device("meta"), torch.no_grad():
            ids = torch.zeros((1, _PROBE), dtype=torch.long)
            hidden = meta.states({}, ids, torch.arange(_PROBE)[None])
            now.set(NoPass())
            scores = meta.scores({}, hidden[:, :1], ids[:, :1])
        seen.layout(layers)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{type(meta.module).__name__} cannot be served: {error} {tried}") from error
    except Exception as error:
        if isinstance(error, AttributeError) and type(error.obj).__name__ == _ANSWER:
            what = f"its head asks its body for {error.name!r}, and is given hidden states alone"
        else:
            what = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise UnsupportedModelError(f"{type(meta.module).__name__} cannot be served: {what}. {tried}") from error
    finally:
        now.reset(token)
    return seen, int(hidden.shape[-1]), int(scores.shape[-1])


@contextmanager
def quiet() -> Iterator[None]:
    """While transformers draws no bars and logs errors alone."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _let_given_through(body: Any) -> None:
    """Have a body answer with the hidden states that are given to it, when some are."""
    from transformers.modeling_outputs import MoeModelOutputWithPast  # has all that heads ask for, of experts too

    usual = body.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        hidden = _given.get()
        return usual(*args, **kwargs) if hidden is None else MoeModelOutputWithPast(last_hidden_state=hidden)

    body.forward = forward


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")
