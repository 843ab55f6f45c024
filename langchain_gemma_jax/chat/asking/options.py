"""Options of one call: the model's settings, those given with the call, and the checkpoint's own. All are checked."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import ConfigDict

from langchain_gemma_jax.chat.asking.answer_format import AnswerFormat, checked_format
from langchain_gemma_jax.chat.asking.recommended import recommended_sampling
from langchain_gemma_jax.chat.asking.route_decision import RouteDecision
from langchain_gemma_jax.chat.asking.tool_choice import checked_tools, plain_choice, strictness
from langchain_gemma_jax.config import SERVER_OFF, default_api_key, default_model, default_server, names_by_default
from langchain_gemma_jax.dialects import Message, Tool
from langchain_gemma_jax.engine.base.sampling_options import FrozenBias, Sampling
from langchain_gemma_jax.engine.host.users_line import users_line
from langchain_gemma_jax.errors import CheckpointError, GemmaJaxError, HubError, InputError
from langchain_gemma_jax.models.configuration.embedded import DEFAULT
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.routing import Route
from langchain_gemma_jax.routing.route import AUTO, as_route
from langchain_gemma_jax.settings.table import OTHER_NAMES, SAMPLED, SETTINGS, ChatSettings, how_to_load

OF_A_CALL = ("tools", "tool_choice", "response_format")

SERVED = "served"  # as a model: the first one that a server serves

_BY_LANGCHAIN = {"stream"}  # arguments of LangChain's own that reach the model and have had their effect
_WHERE = "JAX_PLATFORMS, which says where JAX runs (it takes an accelerator by itself)"
_SERVER = 'ChatGemmaJax(server="http://127.0.0.1:8000") to ask a server of this package'
_ELSEWHERE = {  # names in other packages, and ours
    **{other: name for name, setting in SETTINGS.items() for other in setting.elsewhere},
    "base_url": _SERVER,
    "api_base": _SERVER,
    "openai_api_base": _SERVER,
    "reasoning_effort": "thinking=True",
    "openai_api_key": "api_key",
    "load_in_8bit": 'weights="int8"',
    "load_in_4bit": 'weights="int4"',
    "do_sample": "temperature",
    "format": "response_format, with a call, or with_structured_output",
    "num_return_sequences": "batch, with the same input several times",
    "n": "batch, with the same input several times",
    "device": _WHERE,
    "device_map": _WHERE,
    "n_gpu_layers": _WHERE,
    "num_gpu": _WHERE,
}
_DECISIVE = {  # with one of these ignored, answers would be of another kind, or from elsewhere, than was meant
    "base_url", "api_base", "openai_api_base", "device", "device_map", "load_in_8bit", "load_in_4bit", "format",
    "reasoning_effort",
}  # fmt: skip
_NAMES_OF_MODELS = {"model", "repo", "repository", "checkpoint", "ckpt", "pretrained", "weights", "llm"}
_NOT_OF_MODELS = {"kwargs", "provider", "type", "class", "config"}


class UnknownOptionWarning(UserWarning):
    """An argument means nothing to this package, and has no effect."""


class Options(ChatSettings):
    """One call's settings, checked. A setting that is None is left to the checkpoint, or to the engine."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=False)  # its schema is never built: all is checked

    tools: tuple[Tool, ...] = ()
    choice: str = "auto"  # or "any", "none", or a tool's name
    answer: AnswerFormat | None = None
    route: Route | None = None
    step: RouteDecision | None = None  # what was decided by the route
    ahead: bool = False  # the prompt alone is read, when there is nothing else to do

    def on(self, step: RouteDecision) -> Options:
        """Return these options with the model of a route's step."""
        return self.model_copy(update={"step": step, "model": step.model})

    @property
    def reading_ahead(self) -> Options:
        """The options for reading the prompt alone. One token is picked after it, which is not shown."""
        return self.model_copy(update={"ahead": True, "max_tokens": 1})

    @property
    def sampled(self) -> dict[str, object]:
        """The settings of sampling that were given, by the names that ``Sampling`` has."""
        return {name: value for name in SAMPLED if (value := getattr(self, name)) is not None}

    @property
    def model_was_named(self) -> bool:
        """True if the caller named one of a route's models, so that no other one may take over."""
        return self.step is not None and not self.step.chosen

    @property
    def shows_logprobs(self) -> bool:
        """True if the caller asked for log-probabilities. A route may need them for itself, and does not show them."""
        return bool(self.logprobs)

    @property
    def how_to_load(self) -> HowToLoad:
        """The settings of loading, with the Hub's token in plain text if there is one."""
        return how_to_load(self)

    def with_schema(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the conversation as the model reads it: with the schema of the answer, if its format says so."""
        return messages if self.answer is None else self.answer.added_to(messages)

    def sampling(self, defaults: Mapping[str, object], name: str) -> Sampling:
        """Return the sampling settings: those given, and for the rest those that the checkpoint's authors recommend.

        Raises:
            ConfigError: a setting of the checkpoint's is not possible. Those that were given are checked.
        """
        given = dict(self.sampled)
        if "stop" in given:
            given["stop"] = tuple(cast("Sequence[str]", given["stop"]))
        if "logit_bias" in given:
            given["logit_bias"] = FrozenBias(cast("Mapping[int, float]", given["logit_bias"]))
        return recommended_sampling(defaults, name).with_checked(**given)


_UNSET = {name: field.default for name, field in Options.model_fields.items()}


def settings_of(given: Mapping[str, object]) -> dict[str, object]:
    """Return settings as they are stored: checked one by one and together, in plain values.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """
    asked = {name: value for name, value in given.items() if value is not None and name in SETTINGS}
    found = {name: check(name, value) for name, value in asked.items() if (check := SETTINGS[name].check) is not None}
    if found.get("model") == AUTO and "route" not in found:
        by = ", as GEMMA_JAX_MODEL says" if names_by_default(AUTO) else ""
        raise InputError(
            f'model="auto"{by}: expected a route to choose from, such as route=Route(light=..., heavy=...).'
        )
    if sampled := asked.keys() - found.keys():
        sampling = Sampling(**{name: asked[name] for name in sampled})  # type: ignore[arg-type]
        found |= {name: _plain(getattr(sampling, name)) for name in sampled}
    return found


def _plain(value: object) -> object:
    """Return a value of ``Sampling`` as it is stored: lists and dictionaries can be serialized."""
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, FrozenBias) else value


def constructor_arguments(given: Mapping[str, object], known: set[str], whose: str) -> dict[str, object]:
    """Return a model's arguments as they are stored: by our names, with the model that is meant, and checked.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """
    found = renamed(given)
    if "server" not in known:
        _without_server(found.pop("server", None), whose)
    warn_unknown(found, known, whose)
    if "server" in known:
        found["server"] = found.get("server") or default_server()
        if found["server"] is not None:
            found["api_key"] = found.get("api_key") or default_api_key()
    if found.get("model") is None:
        routed = "route" in known and found.get("route") is not None
        unnamed = DEFAULT if found.get("server") in {None, SERVER_OFF} else SERVED
        found["model"] = AUTO if routed else default_model() or unnamed
    return found | settings_of(found)


def _without_server(server: object, whose: str) -> None:
    """Refuse a server for a model that runs in this process alone; warn if the environment names one.

    Raises:
        InputError: a server is given.
    """
    where = f"{whose} runs in this process. ChatGemmaJax and GemmaJaxLLM ask a server"
    if server not in {None, SERVER_OFF}:
        raise InputError(f"server={server!r}: {where}; leave it out here.")
    if (named := default_server()) not in {None, SERVER_OFF}:
        text = f"GEMMA_JAX_SERVER={named} has no effect here: {where}."
        warnings.warn(text, UnknownOptionWarning, stacklevel=users_line())


def renamed(given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments given, by our names.

    Raises:
        InputError: two arguments are names of the same setting.
    """
    found = dict(given)
    for other, ours in OTHER_NAMES.items():
        if other in found:
            value = found.pop(other)
            if value is not None and found.get(ours) is not None:
                raise InputError(f"{other} is another name of {ours}: give one of them.")
            if value is not None:
                found[ours] = value
    return found


def options(stored: Mapping[str, object], stop: Sequence[str] | None, given: Mapping[str, object]) -> Options:
    """Return one call's settings: those of the model, and over them those that were given with the call.

    Raises:
        InputError: a setting is not possible.
    """
    given = renamed(given)
    warn_unknown(given, {*SETTINGS, *OF_A_CALL, *_BY_LANGCHAIN}, "This call")
    if stop is not None:
        given["stop"] = stop
    changed = {name: value for name, value in given.items() if value is not None}
    found = settings_of({**stored, **changed})
    if not isinstance(found.get("model"), str):
        raise InputError("model: expected the name of a model, found none.")
    listed = given.get("tools") or ()
    tools = checked_tools(listed)
    found |= {
        "route": as_route(found.get("route")),
        "token": stored.get("token"),
        "tools": tools,
        "choice": plain_choice(given.get("tool_choice"), [tool.name for tool in tools]),
        "answer": checked_format(given.get("response_format")),
        "strict": strictness(cast("Sequence[object]", listed), cast("bool | None", found.get("strict"))),
    }
    return Options.model_construct(**_UNSET | found)


def warn_unknown(given: Mapping[str, object], known: set[str], whose: str) -> None:
    """Warn of arguments that have no effect, and suggest the ones that may have been meant.

    Raises:
        InputError: an argument names a model, or decides what answers are like or where they come from.
    """
    for name in sorted(set(given) - known):
        refuse_unknown_model(name, given[name], whose)
        meant = _ELSEWHERE.get(name) or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)
        if name in _DECISIVE and given[name] not in (None, False):
            raise InputError(f"{whose} takes no {name}. Say {meant}; or leave it out.")
        hint = f" Did you mean {meant}?" if meant else ""
        text = f"{whose} takes no {name}: it has no effect.{hint}"
        warnings.warn(text, UnknownOptionWarning, stacklevel=users_line())


def refuse_unknown_model(name: str, value: object, whose: str) -> None:
    """Refuse an unknown argument whose name says that it names a model: another model would answer.

    Raises:
        InputError: the argument is such a one.
    """
    words = set(name.lower().split("_"))
    if isinstance(value, str | os.PathLike) and words & _NAMES_OF_MODELS and not words & _NOT_OF_MODELS:
        raise InputError(f"{whose} takes no {name}, and another model would answer. Say model={os.fspath(value)!r}.")


def name_source(error: GemmaJaxError, model: str) -> None:
    """Add to the error of a model that cannot be loaded that the environment names it, if it does."""
    if isinstance(error, InputError | CheckpointError | HubError) and names_by_default(model):
        error.args = (f"{error} The environment variable GEMMA_JAX_MODEL names this model.", *error.args[1:])
