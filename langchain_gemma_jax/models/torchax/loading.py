"""A model of transformers from a folder or the Hub: looked through without weights, then read, then moved to JAX."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import ml_dtypes
import numpy as np

from langchain_gemma_jax.errors import CheckpointError, InputError, TensorMismatchError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES, ArraySpec
from langchain_gemma_jax.models.mesh.counts import Fit, beyond_its_share, plan_for, weights_alone
from langchain_gemma_jax.models.mesh.tensor_parallel import cuts_of, why_not_among
from langchain_gemma_jax.models.model import Model, Params, ReadFrom
from langchain_gemma_jax.models.placement import Placement, placement_of
from langchain_gemma_jax.models.progress import loading_bar
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.recipes.recipe import BetweenForm, Recipe
from langchain_gemma_jax.models.sources.find_files import find_files
from langchain_gemma_jax.models.sources.generation_defaults import generation_defaults_in
from langchain_gemma_jax.models.sources.load_plan import LoadPlan
from langchain_gemma_jax.models.sources.model_names import TORCHAX
from langchain_gemma_jax.models.sources.read_unchanged import read_unchanged
from langchain_gemma_jax.models.tokenizer import load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.torchax.checks import checked_folder
from langchain_gemma_jax.models.torchax.libraries import TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.meta_module import (
    HOW_TO_RUN,
    knows,
    look_through,
    meta_module,
    most_context,
    named_tensors,
    quiet,
)
from langchain_gemma_jax.models.torchax.read_template import read_template
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode, code_in
from langchain_gemma_jax.models.torchax.torch_model import TorchFacts, TorchModel
from langchain_gemma_jax.models.torchax.versions import check_versions
from langchain_gemma_jax.models.weights import PLAIN, total_bytes
from langchain_gemma_jax.stopping import Stop

Advance: TypeAlias = Callable[[int], object] | None
"""Is told of bytes that were read; None: nobody is."""

_VALUES = {"int64": np.dtype(np.int32), "float64": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def load_torch_model(
    source: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    device: jax.Device | Placement | None = None,
    devices: int | str | None = None,
    replica: int = 0,
    fits: Callable[[LoadPlan], Fit] | None = None,
    progress: bool | None = None,
    planned: Callable[[LoadPlan], None] | None = None,
    like: Model | None = None,
    trust_remote_code: bool = False,
    stop: Stop | None = None,
) -> Model:
    """Load any causal language model that transformers has, ready to run. The arguments are those of ``load``.

    Raises:
        InstallationError: torch, transformers or torchax is missing, or they do not go together.
        UnsupportedModelError: its cache cannot be made static, or it is no decoder alone.
        UnsafeCheckpointError: it is pickled, or would have code in its folder run.
    """
    check_versions()  # before anything is fetched
    if dtype is not None and dtype not in ITEM_BYTES:
        raise InputError(f"dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {dtype!r}.")
    named = source.removeprefix(TORCHAX) if isinstance(source, str) else source
    found = find_files(named, revision=revision, token=token, progress=progress, stop=stop)
    folder, files = found.path, Unchanged.now(found.path)
    raw = checked_folder(folder)
    if like is None:
        libraries()  # before transformers is asked
        code = code_in(folder, raw, known=knows(raw.get("model_type")), trusted=trust_remote_code)
        architecture = architecture_of(raw, dtype or _own_dtype(raw), code)
        tokenizer, name, template = load_tokenizer(folder, may_lack_bos=True), found.name, read_template(folder)

        def plan_at(where: Placement) -> LoadPlan:
            recipe = recipe_for(architecture.facts.dtype, divided=not where.one_device)
            return LoadPlan(name, architecture, recipe, tokenizer, where, files)

        here = jax.local_devices()[replica * (devices if isinstance(devices, int) else 1) :]
        if devices is None:
            plan = plan_at(placement_of(here[0] if replica else device))
        else:
            why_not = partial(why_not_among, heads=architecture.facts.heads)
            plan, chosen = plan_for(devices, name, why_not, plan_at, fits or weights_alone, here)
            plan = replace(plan, chosen=chosen + beyond_its_share(plan.placement, architecture.abstract(plan.recipe)))
    else:
        before = like.architecture
        if not isinstance(before, TorchModel):
            raise TypeError(f"{like.name!r} was not loaded through torchax")
        trusted = before.facts.code is not None
        code = code_in(folder, raw, known=knows(raw.get("model_type")), trusted=trusted)
        architecture = architecture_of(raw, before.facts.dtype, code)
        if architecture != before:
            advice = "Unload it, and load it anew."
            raise CheckpointError(folder, f"the model {like.name!r} that was loaded before", "another one", advice)
        tokenizer, name, template = like.tokenizer, like.name, like.template
        plan = LoadPlan(name, architecture, like.recipe, tokenizer, like.placement, files)
    recipe, where = plan.recipe, plan.placement
    if planned is not None:
        planned(plan)
    with loading_bar(name, total_bytes(architecture.abstract(recipe)), progress=progress) as advance:
        params = read_unchanged(lambda: _read(folder, architecture, recipe, where, advance), files)
    if like is not None:
        return replace(like, params=params)
    defaults, known = generation_defaults_in(folder), ReadFrom(files, tokenizer_digest(folder))
    return Model(
        architecture,
        params,
        tokenizer,
        recipe,
        name,
        defaults,
        templated=template is not None,
        template=template,
        placed=where,
        read_from=known,
    )


def architecture_of(raw: Mapping[str, object], dtype: str, code: RemoteCode | None = None) -> TorchModel:
    """Return the architecture of a configuration: what its layers keep is seen by calling it without numbers.

    Raises:
        UnsupportedModelError: transformers has none, or its cache cannot be made static.
    """
    text = json.dumps(raw, sort_keys=True)
    found = libraries()
    meta = meta_module(text, dtype, code)
    kind = meta.module.config
    layers = int(kind.num_hidden_layers)
    seen, width, vocab_size = look_through(meta, layers)
    layout = seen.layout(layers)
    head_dim = max(layer.head_dim for layer in layout if layer is not None)
    eos = kind.eos_token_id
    eos_ids = tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)
    return TorchModel(
        TorchFacts(
            text,
            dtype,
            meta.specs,
            layout,
            vocab_size,
            width,
            seen.heads,
            most_context(kind),
            eos_ids,
            found.versions,
            cuts_of(((each, shape) for each, shape, _ in meta.specs), meta.plan, width, head_dim),
            code,
        )
    )


def recipe_for(dtype: str, *, divided: bool = False) -> Recipe:
    """Return how its cache is written and looked at: as a Gemma's. Products are as transformers' code has them."""
    return replace(choose_recipe(dtype, divided=divided), layers=PLAIN, embed=PLAIN, between=BetweenForm.XLA)


def _own_dtype(raw: Mapping[str, object]) -> str:
    """Return the dtype that a checkpoint says it has; float32 for float16, as for a Gemma, and where it says none."""
    said = str(raw.get("dtype") or raw.get("torch_dtype") or "float32").removeprefix("torch.")
    return said if said in {"float32", "bfloat16"} else "float32"


def _read(folder: Path, architecture: TorchModel, recipe: Recipe, where: Placement, advance: Advance) -> Params:
    """Return the weights on the device."""
    found = libraries()
    specs = {name: shape for name, shape, _ in architecture.facts.specs}
    with found.alone():
        facts, how = architecture.facts, {**HOW_TO_RUN, "trust_remote_code": architecture.facts.code is not None}
        module = read_by_transformers(found, folder, facts.dtype, "AutoModelForCausalLM", how)
        there = {name: tuple(value.shape) for name, value in named_tensors(module)}
        for name in sorted(specs.keys() | there.keys()):
            if specs.get(name) != there.get(name):
                raise TensorMismatchError(folder, f"{name} of {specs.get(name)}", str(there.get(name)))
        params = moved(module, where, architecture.abstract(recipe), advance)
    return {name: params[name] for name in specs}


def moved(
    module: Any, where: Placement, specs: Mapping[str, ArraySpec] | None = None, advance: Advance = None
) -> Params:
    """Return a module's tensors as arrays in a place, divided as ``specs`` say. Each leaves torch's memory then."""
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


def read_by_transformers(found: TorchLibraries, folder: Path, dtype: str, kind: str, how: Mapping[str, Any]) -> Any:
    """Return the module of a folder with its weights, by one of transformers' classes.

    Raises:
        CheckpointError: transformers cannot read it. TensorMismatchError: a parameter is missing in the files.
    """
    with quiet():
        try:
            module, said = getattr(found.transformers, kind).from_pretrained(
                folder,
                dtype=getattr(found.torch, dtype),
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                **how,
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise CheckpointError(folder, "weights that transformers can read", told) from error
    missing = sorted(said["missing_keys"]) + sorted(map(str, said["mismatched_keys"]))
    if missing:
        raise TensorMismatchError(
            folder, "a tensor for each of the model's parameters", f"none that fits for {', '.join(missing[:4])}"
        )
    return module.eval()


def _without_numbers(value: Any) -> Any:
    """Return what stands for a tensor that was moved: of its shape, without memory."""
    import torch

    with torch.no_grad():
        empty = torch.empty_like(value, device="meta")
    return torch.nn.Parameter(empty, requires_grad=False) if isinstance(value, torch.nn.Parameter) else empty


def _owners(module: Any, value: Any) -> Iterator[tuple[Any, str]]:
    """Where a tensor is held, by each name that it has."""
    for owner in module.modules():
        for leaf, held in (*owner._parameters.items(), *owner._buffers.items()):  # noqa: SLF001  torch's way to let go
            if held is value:
                yield owner, leaf


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor's numbers, of a dtype that JAX has."""
    name = str(value.dtype).removeprefix("torch.")
    if name == "bfloat16":
        import torch

        bits = value.detach().contiguous().view(torch.int16).numpy()
        return np.array(bits).view(_VALUES["bfloat16"])
    array = value.detach().numpy()
    return np.array(array, dtype=_VALUES.get(name, array.dtype), copy=True)
