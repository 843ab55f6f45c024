"""The plan of a deployment of one model, read from the arguments of its start and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from langchain_gemma_jax.config import default_model
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.embedded import DEFAULT

ROWS = Ladders().rows[-1]  # conversations that an engine computes at once
SHUTDOWN_SECONDS = 10.0  # for a replica, after its last call is over

_LEAST = {"waiting": 0, "replicas": 1, "max_replicas": 1, "max_context": 2, "cpus": 0.0, "gpus": 0.0, "call_s": 1.0}
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, kw_only=True)
class DeploymentPlan:
    """A deployment of one model."""

    model: str = ""
    """The model. Empty: ``GEMMA_JAX_MODEL``, or an embedded one."""
    replicas: int = 1
    """The number of replicas, or the fewest."""
    max_replicas: int | None = None
    """The most replicas. None: their number is fixed."""
    waiting: int = ROWS
    """Calls that may wait in a replica while others are computed. One more goes to another replica."""
    call_s: float = 300.0
    """Seconds that a call may take. A replica that is removed waits as long for its open calls."""
    max_context: int | None = None
    """The most tokens that a conversation may have."""
    warmup: bool = True
    """Make all programs of a replica before it gets calls."""
    api_key_file: str = ""
    """The file of API keys, on each machine. Empty: no keys, and only programs on the same machine are answered."""
    prefix_folder: str = ""
    """A folder for prefixes that all machines mount. It needs ``prefix_key_file``. Empty: prefixes are not kept."""
    prefix_key_file: str = ""
    """The file with the key for them, on each machine."""
    cpus: float = 1.0
    """Processors reserved for a replica."""
    gpus: float = 0.0
    """GPUs of a replica, in Ray's sense: any accelerator that Ray counts as one."""
    tpus: float = 0.0
    """TPU chips of a replica."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not least <= value < 2**31:
                raise InputError(f"{name}: expected a number from {least:g} to 2**31, found {value!r}.")
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise InputError(
                f"max_replicas: expected at least replicas, which is {self.replicas}, found {self.max_replicas}."
            )

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> DeploymentPlan:
        """Return the plan that arguments describe. Their values may be texts, as on a command line.

        Raises:
            InputError: an argument is unknown, or its value is not possible.
        """
        return cls(**read_arguments(cls, "app", arguments))

    @property
    def named_model(self) -> str:
        """The model: from the argument, the environment or the default."""
        return self.model or default_model() or DEFAULT

    @property
    def deployment(self) -> str:
        """The name of the deployment: the model's, with other characters replaced by "-"."""
        name = Path(self.named_model).name or "model"
        return "".join(mark if mark.isascii() and (mark.isalnum() or mark in "-_.") else "-" for mark in name)

    @property
    def ongoing(self) -> int:
        """The number of calls that a replica takes: those that its engine computes at once, and those that may wait."""
        return ROWS + self.waiting

    @property
    def drain_s(self) -> float:
        """Seconds that a removed replica has to finish its calls and shut down."""
        return self.call_s + SHUTDOWN_SECONDS


def read_arguments(plan: type[Any], what: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as the fields of a plan have them. ``what``: takes them, for the error.

    Raises:
        InputError: an argument is unknown, or its value is not possible.
    """
    known = {field.name: str(field.type) for field in fields(plan)}
    if unknown := sorted(set(arguments) - set(known)):
        raise InputError(f"{what}: no argument is called {', '.join(unknown)}. There are: {', '.join(known)}.")
    return {name: read_value(name, known[name], value) for name, value in arguments.items()}


def read_value(name: str, kind: str, value: Any) -> Any:
    """Return an argument's value as its field has it. ``kind``: the field's type, such as "int | None".

    Raises:
        InputError: it is none of this kind.
    """
    wanted = {"int": int, "float": float, "bool": bool, "str": str}[kind.removesuffix(" | None")]
    if value is None and kind.endswith("None"):
        return None
    text = str(value).strip()
    try:
        return _WORDS[text.lower()] if wanted is bool else value if wanted is str and value == text else wanted(text)
    except (ValueError, KeyError):
        raise InputError(f"{name}: expected {_KINDS[wanted]}, found {value!r}.") from None


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
