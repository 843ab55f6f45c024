"""A checked folder with a model of transformers, which transformers' own code will run on JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.models.checkpoint.generation_defaults import generation_defaults_in
from langchain_gemma_jax.models.checkpoint.read_template import read_template
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.find import SourceFiles
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.mapped.array_file import ArrayFile
from langchain_gemma_jax.models.mesh.tensor_parallel import why_not_among
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.seams.params import Advance, Params
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import PLAIN
from langchain_gemma_jax.models.tokenizer import load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.torchax.checks import checked_folder
from langchain_gemma_jax.models.torchax.libraries import libraries
from langchain_gemma_jax.models.torchax.meta_module import is_in_transformers
from langchain_gemma_jax.models.torchax.reading import read_params
from langchain_gemma_jax.models.torchax.remote_code import code_in
from langchain_gemma_jax.models.torchax.torch_model import TorchModel, architecture_of, as_before, own_dtype


class OpenedTorch(Opened):
    """A folder with a causal language model of any family in transformers."""

    def __init__(self, source: SourceFiles) -> None:
        """Check a folder.

        Raises:
            InstallationError: torch, transformers or torchax is missing, or their releases do not fit together.
            UnsafeCheckpointError: its weights are pickled. UnsupportedModelError: it is not a decoder-only model.
        """
        self.name, self.files = source.name, Unchanged.now(source.path)
        self._folder, self._raw = source.path, checked_folder(source.path)
        self._made: TorchModel | None = None  # once the model is planned
        libraries()  # imported here, before the first use of transformers

    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        del recipe  # transformers' code takes the products; ``check_asked`` refuses a recipe
        known = is_in_transformers(self._raw.get("model_type"))
        code = code_in(self._folder, self._raw, known=known, trusted=how.trust_remote_code)
        architecture = self._made = architecture_of(self._raw, how.dtype or own_dtype(self._raw), code)
        template = read_template(self._folder)
        facts = partial(
            LoadPlan,
            self.name,
            architecture,
            tokenizer=load_tokenizer(self._folder, may_lack_bos=True),
            files=self.files,
            vocabulary=tokenizer_digest(self._folder),
            generation_defaults=generation_defaults_in(self._folder),
            chat_format=ChatFormat(has_template=template is not None, template=template),
        )
        return lambda where: facts(recipe=recipe_for(architecture, where, how.cache_dtype), placement=where)

    def planned_again(self, like: Model) -> LoadPlan:
        self._made = as_before(like.architecture, self._folder, self._raw)
        if self._made != like.architecture:
            advice = "Unload it, and load it again."
            raise CheckpointError(
                self._folder, f"the model {like.name!r} that was loaded before", "another one", advice
            )
        return LoadPlan(like.name, self._made, like.recipe, like.tokenizer, like.placement, self.files)

    def why_not(self, devices: int) -> str | None:
        return why_not_among(devices, self._planned_model.facts.heads)

    def read(self, plan: LoadPlan, advance: Advance, mapped: ArrayFile | None = None) -> Params:
        if mapped is not None:
            raise TypeError(f"{self.name!r} has no places in a mapped file")
        return read_params(self._folder, self._planned_model, plan.recipe, plan.placement, advance)

    @property
    def _planned_model(self) -> TorchModel:
        if self._made is None:
            raise RuntimeError("a model is planned before it is divided or read")
        return self._made

    def close(self) -> None:
        """Do nothing: transformers opens files when it reads them."""


def recipe_for(model: TorchModel, where: Placement, cache_dtype: str | None = None) -> Recipe:
    """Return a recipe with a Gemma's cache and attention. Products are those of transformers' code."""
    chosen = choose_recipe(model.facts.dtype, divided=not where.one_device)
    attention = chosen.attention if model.facts.attends_by_kernel else AttentionForm.PRODUCTS
    found = replace(chosen, layers=PLAIN, embed=PLAIN, between=BetweenForm.XLA, attention=attention)
    return found if cache_dtype is None else replace(found, cache_dtype=cache_dtype)
