"""``adapter_config.json`` of PEFT: the scale of each projection, and the refusal of what is not applied here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.strict_json import short

_MERGE = "Merge it into its base model (in PEFT, merge_and_unload), save the result, and load that."

# Fields that say how an adapter was trained or begun, where it came from, or which projections have matrices, which
# shows in the tensors. None of them changes what it adds.
_WITHOUT_EFFECT = frozenset({
    "auto_mapping", "base_model_name_or_path", "ensure_weight_tying", "eva_config", "exclude_modules", "fan_in_fan_out",
    "inference_mode", "layers_pattern", "layers_to_transform", "lora_dropout", "megatron_config", "megatron_core",
    "peft_version", "qalora_group_size", "revision", "runtime_config", "target_modules", "task_type",
})  # fmt: skip
_READ = frozenset({"alpha_pattern", "init_lora_weights", "lora_alpha", "peft_type", "r", "rank_pattern", "use_rslora"})
# What would change the answers, and is not applied: the field, and what it stands for.
_REFUSED: Mapping[str, str] = {
    "use_dora": "DoRA, which scales the columns of merged weights",
    "modules_to_save": "whole modules beside the matrices of low rank",
    "lora_bias": "biases",
    "layer_replication": "layers that are there several times",
    "trainable_token_indices": "embeddings of its own for some tokens",
    "target_parameters": "matrices for parameters that are no projections, such as those of experts",
    "use_qalora": "QALoRA, which averages inputs",
    "alora_invocation_tokens": "a beginning at certain tokens (aLoRA)",
}
_NEW_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
Number = TypeVar("Number", int, float)
_LITERAL = re.compile(r"[\w-]+(\.[\w-]+)*")


@dataclass(frozen=True)
class PeftConfig:
    """The facts of a configuration that what it adds depends on."""

    path: Path
    base: str  # the model that it was trained for, as it says
    rank: int
    alpha: float
    rank_stabilized: bool
    ranks: Mapping[str, int]  # by the end of projections' names
    alphas: Mapping[str, float]

    def scale(self, module: str, rank: int) -> float:
        """Return the factor of what a projection's matrices add.

        Raises:
            ConfigError: the matrices have another rank than the configuration says.
        """
        expected = _by_pattern(self.ranks, module, self.rank)
        if expected != rank:
            raise ConfigError(f"{self.path}: expected matrices of rank {expected} for {module}, found rank {rank}.")
        return _by_pattern(self.alphas, module, self.alpha) / (rank**0.5 if self.rank_stabilized else rank)


def peft_config(raw: Mapping[str, object], path: Path) -> PeftConfig:
    """Return the facts of a configuration.

    Raises:
        ConfigError: a field is malformed. UnsupportedModelError: it asks for something that is not applied here.
    """
    kind = raw.get("peft_type")
    if kind != "LORA":
        raise _unsupported(path, f"peft_type {short(kind)}", "LORA")
    for name, meaning in _REFUSED.items():
        if raw.get(name) not in (None, False, [], {}):
            raise _unsupported(path, f"{name} {short(raw[name])}: {meaning}", "none")
    if (bias := raw.get("bias", "none")) != "none":
        raise _unsupported(path, f"bias {short(bias)}", '"none"')
    begun = raw.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(_NEW_BASE):
        raise _unsupported(path, f"init_lora_weights {short(begun)}: it changes the weights of its base", "another one")
    for name in sorted(raw.keys() - _WITHOUT_EFFECT - _READ - _REFUSED.keys() - {"bias"}):
        # A newer PEFT's field, switched off, is of no use; switched on, it may change what the adapter adds.
        if raw[name] not in (None, False, [], {}) and not name.endswith("_config"):
            raise _unsupported(path, f"the field {name} {short(raw[name])}", "fields that are known here")
        if name.endswith("_config") and raw[name] not in (None, {}):
            raise _unsupported(path, f"{name}", "none")
    stabilized = raw.get("use_rslora", False)
    if not isinstance(stabilized, bool):
        raise ConfigError(f"{path}: expected use_rslora to be true or false, found {short(stabilized)}.")
    named = raw.get("base_model_name_or_path")
    return PeftConfig(
        path,
        named if isinstance(named, str) else "",
        _whole(raw.get("r"), "r", path),
        _number(raw.get("lora_alpha"), "lora_alpha", path),
        stabilized,
        {_ending(key, path): _whole(value, "rank_pattern", path) for key, value in _pattern(raw, "rank_pattern", path)},
        {
            _ending(key, path): _number(value, "alpha_pattern", path)
            for key, value in _pattern(raw, "alpha_pattern", path)
        },
    )


def _by_pattern(patterns: Mapping[str, Number], module: str, default: Number) -> Number:
    """Return the value of the first pattern that a module's name ends with, as PEFT chooses it."""
    return next((value for end, value in patterns.items() if module == end or module.endswith(f".{end}")), default)


def _pattern(raw: Mapping[str, object], name: str, path: Path) -> list[tuple[str, object]]:
    found = raw.get(name) or {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: expected {name} to map names to numbers, found {short(found)}.")
    return list(found.items())


def _ending(pattern: str, path: Path) -> str:
    """Return the names' end that a pattern stands for. Regular expressions from files are not run."""
    plain = pattern.removeprefix("^").removesuffix("$").replace(r"\.", ".").removeprefix(".*.")
    if not _LITERAL.fullmatch(plain):
        raise _unsupported(path, f"the pattern {short(pattern)}", "names, such as layers.3.self_attn.q_proj")
    return plain


def _whole(value: object, name: str, path: Path) -> int:
    if type(value) is not int or not 0 < value < 2**31:
        raise ConfigError(f"{path}: expected {name} to be a whole number from 1, found {short(value)}.")
    return value


def _number(value: object, name: str, path: Path) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e6:  # type: ignore[arg-type]
        raise ConfigError(f"{path}: expected {name} to be a number, found {short(value)}.")
    return float(value)  # type: ignore[arg-type]


def _unsupported(path: Path, found: str, expected: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"{path}: adapters are applied with {expected} here; found {found}. {_MERGE}")
