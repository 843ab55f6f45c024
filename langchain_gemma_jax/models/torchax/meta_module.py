"""A transformers model without weights: its parameters, the caches of its layers, and how to call it."""

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
from langchain_gemma_jax.models.torchax.libraries import ATTENTION, EAGER, TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.own_attention import FAMILIES
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode
from langchain_gemma_jax.models.torchax.traced_pass import NoPass, PassCache, now
from langchain_gemma_jax.models.torchax.weightless import weightless

EXPERTS = "batched_mm"  # the one implementation of experts whose shapes do not depend on the router's choice
_FIXED_BY_LENGTH = ("dynamic", "longrope")  # ropes that change for long texts
_SPECIAL_FLOATS = ("Infinity", "-Infinity", "NaN")
_UNLIMITED = 2048  # tokens, for a model without positions whose configuration states no length (Bloom)

_given: ContextVar[Any] = ContextVar("given", default=None)  # hidden states that replace the body's output


@dataclass(frozen=True)
class MetaModule:
    """A model of a configuration, whose tensors have shapes but no data."""

    libraries: TorchLibraries
    module: Any
    body_name: str  # of its body, which is everything but its head

    @property
    def body(self) -> Any:
        return getattr(self.module, self.body_name)

    @property
    def prefix(self) -> str:
        """The beginning of the names in its body."""
        return f"{self.body_name}."

    @cached_property
    def specs(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name, shape and dtype of every parameter and buffer. A tensor with two names is listed by the first."""
        return tuple((name, tuple(value.shape), _dtype(value)) for name, value in named_tensors(self.module))

    @property
    def plan(self) -> Mapping[str, str]:
        """The model's own plan for division among devices, if it has one: patterns of names, and a style for each."""
        body = getattr(self.module.config, "base_model_tp_plan", None) or {}
        head = getattr(type(self.module), "_tp_plan", None) or {}
        return {f"{self.prefix}{pattern}": str(style) for pattern, style in body.items()} | dict(head)

    @property
    def attends_itself(self) -> bool:
        """True if its attention is its own code."""
        return self.module.config.model_type in FAMILIES

    def states(self, params: Mapping[str, Any], ids: Any, positions: Any) -> Any:
        """Return the last hidden states ``[row, token, width]``. Cache and attention are the pass in ``now``."""
        parameters = inspect.signature(type(self.body).forward).parameters
        cache = "cache" if "cache" in parameters else "past_key_values"
        asked = {"input_ids": ids, cache: PassCache(), "use_cache": True}
        if "position_ids" in parameters:
            asked["position_ids"] = positions
        own = {name.removeprefix(self.prefix): each for name, each in params.items() if name.startswith(self.prefix)}
        return self._call(self.body, own, asked).last_hidden_state

    def scores(self, params: Mapping[str, Any], hidden: Any, ids: Any) -> Any:
        """Return the scores of the next token for hidden states: all that the model does after its body."""
        token, outside = _given.set(hidden), now.set(NoPass())
        try:
            return self._call(self.module, dict(params), {"input_ids": ids, "use_cache": False}).logits
        finally:
            now.reset(outside)
            _given.reset(token)

    def _call(self, module: Any, params: dict[str, Any], asked: dict[str, Any]) -> Any:
        return self.libraries.torch.func.functional_call(module, params, (), asked, tie_weights=True)


@lru_cache(maxsize=4)
def meta_module(config: str, dtype: str, code: RemoteCode | None = None) -> MetaModule:
    """Return the model of a configuration in JSON; with ``code``, the one of that code.

    Raises:
        InstallationError: the libraries are missing. UnsupportedModelError: transformers has no such model.
    """
    shared = libraries()
    with shared.alone():
        kind = configuration(shared, json.loads(config), code)
        torch = shared.torch
        with weightless(torch), quiet():
            try:
                module = shared.transformers.AutoModelForCausalLM.from_config(
                    kind,
                    dtype=getattr(torch, dtype),
                    trust_remote_code=code is not None,
                    **how_to_run(str(kind.model_type)),
                )
            except KeyError as error:
                raise _own_attentions(kind.model_type, error) from error
            except (ValueError, ImportError, TypeError, RuntimeError) as error:
                raise UnsupportedModelError(
                    f"transformers makes no model of this configuration ({kind.model_type}) that can be run here: "
                    f"{' '.join(str(error).split())[:300]}"
                ) from error
        module.to("meta").eval()
        fix_lengths(module)
        _ask_for_no_numbers(module)
        name = _body_of(module, shared.transformers.PreTrainedModel)
        for each in {getattr(module, name), module.get_decoder()} - {module}:  # heads call the one or the other
            _return_given_states(each)
        return MetaModule(shared, module, name)


def _body_of(module: Any, models: type) -> str:
    """Return the name of a model's body."""
    name = str(module.base_model_prefix)
    if module.base_model is not module:
        return name
    inner = [name for name, each in module.named_children() if isinstance(each, models)]
    if len(inner) != 1:
        raise UnsupportedModelError(f"{type(module).__name__}: expected a body with a head on it, found no body.")
    return str(inner[0])


def _own_attentions(kind: str, error: KeyError) -> UnsupportedModelError:
    if error.args == (ATTENTION,):
        what = "its code in transformers has a list of attentions of its own, which takes no other"
    else:
        what = f"its code in transformers looks for {error.args[0]!r:.100} and does not find it"
    return UnsupportedModelError(f"A model of the kind {kind!r} cannot be served: {what}.")


def how_to_run(kind: str) -> Mapping[str, str]:
    """Return how transformers is to run a model, by its ``model_type``."""
    return {"attn_implementation": EAGER if kind in FAMILIES else ATTENTION, "experts_implementation": EXPERTS}


def is_in_transformers(kind: object) -> bool:
    """Return True if transformers has a kind of model, by its ``model_type``."""
    from transformers import CONFIG_MAPPING

    return isinstance(kind, str) and kind in CONFIG_MAPPING


def configuration(shared: TorchLibraries, raw: Mapping[str, object], code: RemoteCode | None = None) -> Any:
    """Return transformers' object for a configuration; with ``code``, the object of that code.

    Raises:
        ConfigError: transformers has no such kind, or cannot read the configuration.
    """
    from transformers import CONFIG_MAPPING

    kind = raw.get("model_type")
    if code is not None:
        try:
            return shared.transformers.AutoConfig.from_pretrained(
                code.folder, trust_remote_code=code is not None, local_files_only=True
            )
        except Exception as error:  # the model's own code can raise anything
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise ConfigError(f"config.json: the model's own code cannot read it: {reason}") from error
    if not isinstance(kind, str) or not is_in_transformers(kind):
        raise ConfigError(
            f"config.json: expected a model_type that transformers {shared.transformers.__version__} has, found "
            f"{kind!r}. A newer one needs a newer transformers, and that a newer release of this package."
        )
    try:
        return CONFIG_MAPPING[kind].from_dict(_with_special_floats(raw))
    except Exception as error:
        raise ConfigError(f"config.json: transformers cannot read it: {' '.join(str(error).split())[:300]}") from error


def _with_special_floats(value: Any) -> Any:
    """Return a configuration with the numbers that JSON lacks, which transformers writes as objects."""
    if isinstance(value, dict):
        named = value.get("__float__")
        return (
            float(named)
            if named in _SPECIAL_FLOATS
            else {name: _with_special_floats(each) for name, each in value.items()}
        )
    return [_with_special_floats(each) for each in value] if isinstance(value, list) else value


def fix_lengths(module: Any) -> None:
    """Fix ropes that change with the length of a text to their form for short texts."""
    for each in module.modules():
        kind = getattr(each, "rope_type", None)
        if isinstance(kind, str) and kind in _FIXED_BY_LENGTH:
            each.rope_type = "default"
        elif isinstance(kind, dict):
            each.rope_type = {name: "default" if one in _FIXED_BY_LENGTH else one for name, one in kind.items()}


def most_context(kind: Any) -> int:
    """Return the most tokens that a model can read; for a rope that changes with length, its original length."""
    names = ("max_position_embeddings", "max_seq_len", "seq_length")
    limits = (getattr(kind, name, None) for name in names)
    most = int(next((number for number in limits if number), _UNLIMITED))
    rope = getattr(kind, "rope_parameters", None) or {}
    for each in (rope, *(inner for inner in rope.values() if isinstance(inner, dict))):
        if each.get("rope_type") in _FIXED_BY_LENGTH:
            most = min(most, int(each.get("original_max_position_embeddings") or most))
    return most


def named_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield every parameter and buffer with its name, each once."""
    yield from module.named_parameters()
    yield from module.named_buffers()


@contextmanager
def quiet() -> Iterator[None]:
    """Turn off transformers' progress bars and its log below errors, inside of the block."""
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


class GivenStates:
    """The output of a body, as a head sees it: hidden states that were computed before, and nothing else."""

    def __init__(self, hidden: Any) -> None:
        self.last_hidden_state = hidden

    def __getitem__(self, place: Any) -> Any:
        return (self.last_hidden_state,)[place]

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def _return_given_states(body: Any) -> None:
    """Make a body return the hidden states in ``_given``, when there are any."""
    usual = body.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        hidden = _given.get()
        return usual(*args, **kwargs) if hidden is None else GivenStates(hidden)

    body.forward = forward


def _ask_for_no_numbers(module: Any) -> None:
    """Leave out what models do with the numbers of ids: a warning about padding, which is never there."""
    for each in module.modules():
        if hasattr(each, "warn_if_padding_and_no_attention_mask"):
            each.warn_if_padding_and_no_attention_mask = lambda *_: None


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")
