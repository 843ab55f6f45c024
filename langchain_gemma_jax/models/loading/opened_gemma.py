"""A Gemma whose files are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import jax

from langchain_gemma_jax.errors import CheckpointError, InputError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.generation_defaults import GENERATION_DEFAULTS
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.abstract import Path, abstract, walk
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.division import why_not
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gemma.drafter import GemmaDrafter
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.asked_storage import AskedStorage
from langchain_gemma_jax.models.loading.check_asked import asked_dtype
from langchain_gemma_jax.models.loading.drafters import AskedDrafter, DrafterFiles, LoadedDrafter
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.loading.place import place, place_mapped
from langchain_gemma_jax.models.mapped.array_file import ArrayFile, ArrayPlaces
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.params import Advance, Params
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import stored_as, total_bytes
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.model_media import ModelMedia


class GemmaFiles(Protocol):
    """The files of one Gemma, in any format."""

    @property
    def checkpoint(self) -> Checkpoint[Any]:
        """The stored weights."""
        ...

    def default_dtype(self, platform: str) -> str:
        """Return the dtype of products, if the caller asked for none."""
        ...

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        """Return the tokenizer, and a digest of it."""
        ...

    def generation_defaults(self) -> Mapping[str, object]:
        """Return the authors' recommended sampling settings."""
        ...

    def chat_format(self, tokenizer: Tokenizer) -> ChatFormat:
        """Return the chat format, as far as the files give it."""
        ...

    def encoders(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
        """Return the encoders of pictures and sounds. None: the model reads text alone."""
        ...


def dtype_of_unpacked(platform: str) -> str:
    """Return the dtype of products with packed matrices: on CPUs float32, which is faster there and more exact."""
    return "float32" if platform == "cpu" else "bfloat16"


class OpenedGemma(Opened):
    """The open files of a Gemma, in any format."""

    among_hosts = True

    def __init__(self, name: str, files: Unchanged, stored: GemmaFiles, drafter: AskedDrafter | None = None) -> None:
        """Take what is open. ``drafter``: the folder of the drafter, which is opened now. None: there is none."""
        self.name, self.files, self._stored = name, files, stored
        self._asked_for_drafter = drafter is not None and drafter.named
        self._drafter = None if drafter is None else DrafterFiles(drafter.folder, stored.checkpoint.config, name)

    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        stored, asked = self._stored, asked_dtype(how.dtype, recipe)
        tokenizer, vocabulary = stored.tokenizer()
        facts = partial(
            LoadPlan,
            self.name,
            tokenizer=tokenizer,
            files=self.files,
            vocabulary=vocabulary,
            generation_defaults=stored.generation_defaults(),
            chat_format=stored.chat_format(tokenizer),
        )
        encoders = stored.encoders(tokenizer, self.files)
        architecture = Gemma(stored.checkpoint.config, () if encoders is None else encoders.encoders)

        if how.cache_dtype is not None and architecture.embeds:
            raise InputError(
                f"cache_dtype={how.cache_dtype!r}: {self.name!r} makes vectors of texts and keeps no context, so there "
                "are no keys and values to round. Leave it out."
            )

        def at(where: Placement) -> LoadPlan:
            divided = not where.one_device
            storage = AskedStorage(how.weights, how.activations, divided, cache_dtype=how.cache_dtype)
            if recipe is None:
                dtype = asked or stored.default_dtype(where.platform)
                chosen = storage.chosen(stored.checkpoint, dtype)
            else:
                chosen = storage.for_own_recipe(recipe).recipe_for(stored.checkpoint, recipe)
            if divided:
                check_divisible(architecture.abstract(chosen))
            drafter = self._drafter_at(where, chosen)
            return facts(architecture=architecture, recipe=chosen, placement=where, encoders=encoders, drafter=drafter)

        return at

    def planned_again(self, like: Model) -> LoadPlan:
        if (other := self._difference(like)) is not None:
            advice = "Unload it, and load it again."
            raise CheckpointError(self.files.folder, f"the model {like.name!r} that was loaded before", other, advice)
        plan = LoadPlan(like.name, like.architecture, like.recipe, like.tokenizer, like.placement, self.files)
        drafter = self._drafter_at(like.placement, like.recipe)
        if drafter != (None if like.drafter is None else like.drafter.drafter):
            advice = "Unload the model, and load it again."
            folder = self.files.folder if self._drafter is None else self._drafter.folder
            raise CheckpointError(folder, f"the drafter of {like.name!r} that was loaded before", "another one", advice)
        return replace(plan, drafter=drafter)

    def why_not(self, devices: int) -> str | None:
        return why_not(self._stored.checkpoint.config, devices)

    def places(self, plan: LoadPlan) -> ArrayPlaces | None:
        return ArrayPlaces.of(self._specs(plan.recipe), by_row=lambda path: path == ("ple_embed",))

    def read(self, plan: LoadPlan, advance: Advance, mapped: ArrayFile | None = None) -> Params:
        config, tensors, naming = self._stored.checkpoint
        recipe = plan.recipe
        if mapped is not None and mapped.filled:
            params = place_mapped(mapped, self._specs(recipe), plan.placement)
            if advance is not None:
                advance(total_bytes(params))
            return params
        return place(
            tensors,
            naming,
            config,
            recipe.dtype,
            recipe.layout,
            plan.placement,
            advance,
            storage=recipe.storage,
            mapped=mapped,
        )

    def read_drafter(self, plan: LoadPlan) -> LoadedDrafter | None:
        if plan.drafter is None or self._drafter is None:
            return None
        return self._drafter.read(plan.drafter, plan.placement)

    def _drafter_at(self, where: Placement, recipe: Recipe) -> GemmaDrafter | None:
        """Return the drafter for a placement. None: there is none, or none was asked for and several devices have none.

        Raises:
            UnsupportedModelError: one was asked for, and the model is divided.
        """
        if self._drafter is None:
            return None
        if where.one_device:
            return self._drafter.drafter(recipe)
        if not self._asked_for_drafter:
            return None
        raise UnsupportedModelError(
            f"{self._drafter.folder}: expected {self.name!r} on one device, where a drafter runs, found it divided "
            f"among {len(where.devices)}. Leave drafter or devices out."
        )

    def _specs(self, recipe: Recipe) -> list[tuple[Path, Any]]:
        """Return the stored form of each array, by path."""
        dense = abstract(self._stored.checkpoint.config, recipe.dtype, recipe.layout)
        return [(path, stored_as(recipe.storage, path, spec)) for path, spec in walk(dense)]

    def close(self) -> None:
        self._stored.checkpoint.tensors.close()
        if self._drafter is not None:
            self._drafter.close()

    def _difference(self, like: Model) -> str | None:
        """Return how the model in these files differs from a loaded one that it is to replace. None: it does not."""
        stored, storage = self._stored, AskedStorage(None, None, divided=not like.placement.one_device)
        if (
            like.architecture.gemma != stored.checkpoint.config
            or storage.recipe_for(stored.checkpoint, like.recipe) != like.recipe
        ):
            return "another one"
        before = like.read_from
        if before is None or before.files == self.files:
            return None
        if stored.generation_defaults() != like.generation_defaults:
            return f"another {GENERATION_DEFAULTS} than its own"
        return None if stored.tokenizer()[1] == before.tokenizer else "another tokenizer than its own"


def check_divisible(specs: Any) -> None:
    """Refuse a model whose attention and feed-forward cannot be divided head by head among devices.

    Args:
        specs: its tree, with an ``ArraySpec`` for each array.

    Raises:
        UnsupportedModelError: runs of packed numbers change their format within heads, or within a gate.
    """
    for layer in specs["layers"]:
        if not all(leaf.sections for name in ("qkv", "gate_up") for leaf in jax.tree.leaves(layer[name])):
            raise UnsupportedModelError(
                "Its file changes the format of packed numbers within heads or within a gate, so they cannot be "
                "divided among devices. Take another file of this model, or leave devices out."
            )
