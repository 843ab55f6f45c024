"""The weights of a model of transformers: read by transformers, then moved to JAX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from langchain_gemma_jax.errors import CheckpointError, TensorMismatchError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.seams.params import Advance, Params
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.libraries import TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.meta_module import how_to_run, named_tensors, quiet
from langchain_gemma_jax.models.torchax.torch_model import TorchModel

_VALUES = {"int64": np.dtype(np.int32), "float64": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def read_params(folder: Path, architecture: TorchModel, recipe: Recipe, where: Placement, advance: Advance) -> Params:
    """Read a folder's weights to a placement.

    Raises:
        CheckpointError: transformers cannot read them. TensorMismatchError: they belong to another model.
    """
    shared = libraries()
    specs = {name: shape for name, shape, _ in architecture.facts.specs}
    with shared.alone():
        facts = architecture.facts
        how = {**how_to_run(facts.model_type), "trust_remote_code": facts.code is not None}
        module = read_by_transformers(shared, folder, facts.dtype, "AutoModelForCausalLM", how)
        there = {name: tuple(value.shape) for name, value in named_tensors(module)}
        for name in sorted(specs.keys() | there.keys()):
            if specs.get(name) != there.get(name):
                raise TensorMismatchError(folder, f"{name} of {specs.get(name)}", str(there.get(name)))
        params = moved(module, where, architecture.abstract(recipe), advance)
    return {name: params[name] for name in specs}


def moved(
    module: Any, where: Placement, specs: Mapping[str, ArraySpec] | None = None, advance: Advance = None
) -> Params:
    """Move a module's tensors to a placement, divided by ``specs``. Each is freed in torch after its move."""
    params: Params = {}
    waiting = dict(named_tensors(module))
    for name in list(waiting):
        value = waiting.pop(name)
        array = _as_numpy(value)
        params[name] = where.put(array) if specs is None else where.put({name: array}, {name: specs[name]})[name]
        left = _without_numbers(value)
        for owner, leaf in list(_owners(module, value)):
            held = owner.__dict__["_parameters" if leaf in owner.__dict__["_parameters"] else "_buffers"]
            held[leaf] = left
        if advance is not None:
            advance(array.nbytes)
    return params


def read_by_transformers(shared: TorchLibraries, folder: Path, dtype: str, kind: str, how: Mapping[str, Any]) -> Any:
    """Return the module of a folder with its weights, by one of transformers' classes.

    Raises:
        CheckpointError: transformers cannot read it. TensorMismatchError: a parameter is missing in the files.
    """
    with quiet():
        try:
            module, loaded = getattr(shared.transformers, kind).from_pretrained(
                folder,
                dtype=getattr(shared.torch, dtype),
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                **how,
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise CheckpointError(folder, "weights that transformers can read", reason) from error
    missing = sorted(loaded["missing_keys"]) + sorted(map(str, loaded["mismatched_keys"]))
    if missing:
        raise TensorMismatchError(
            folder, "a tensor for each of the model's parameters", f"none that fits for {', '.join(missing[:4])}"
        )
    return module.eval()


def _without_numbers(value: Any) -> Any:
    """Return a placeholder for a moved tensor: of the same shape, without memory."""
    import torch

    with torch.no_grad():
        empty = torch.empty_like(value, device="meta")
    return torch.nn.Parameter(empty, requires_grad=False) if isinstance(value, torch.nn.Parameter) else empty


def _owners(module: Any, value: Any) -> Iterator[tuple[Any, str]]:
    """Yield each inner module that holds a tensor, with the tensor's name there."""
    for owner in module.modules():
        for leaf, held in (*owner._parameters.items(), *owner._buffers.items()):  # noqa: SLF001  the only way to free
            if held is value:
                yield owner, leaf


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor's numbers, in a dtype that JAX has."""
    name = str(value.dtype).removeprefix("torch.")
    if name == "bfloat16":
        import torch

        bits = value.detach().contiguous().view(torch.int16).numpy()
        return np.array(bits).view(_VALUES["bfloat16"])
    array = value.detach().numpy()
    return np.array(array, dtype=_VALUES.get(name, array.dtype), copy=True)
