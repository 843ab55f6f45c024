"""A model from a folder or from the Hub: found, checked, and put on the device."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.errors import CheckpointError, InputError
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import TowerSource
from langchain_gemma_jax.models.checkpoint.parts import Naming, TensorSource
from langchain_gemma_jax.models.checkpoint.place import default_dtype, place
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES
from langchain_gemma_jax.models.configuration.division import why_not
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.gguf.opening import only_gguf, open_gguf, sampling_defaults
from langchain_gemma_jax.models.mesh.counts import (
    Fit,
    beyond_its_share,
    checked_devices,
    encoders_on_each,
    plan_for,
    weights_alone,
)
from langchain_gemma_jax.models.mmproj.beside import encoders_beside
from langchain_gemma_jax.models.model import Model, ReadFrom
from langchain_gemma_jax.models.packed.activations import checked_activations
from langchain_gemma_jax.models.packed.from_file import BlockSource
from langchain_gemma_jax.models.packed.qat.mobile import MobileSource
from langchain_gemma_jax.models.packed.qat.quantised_folder import open_quantised, quantisation_of
from langchain_gemma_jax.models.placement import Placement, placement_of
from langchain_gemma_jax.models.progress import loading_bar
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.sources.find_files import find_files
from langchain_gemma_jax.models.sources.generation_defaults import GENERATION_DEFAULTS, generation_defaults_in
from langchain_gemma_jax.models.sources.load_plan import LoadPlan
from langchain_gemma_jax.models.sources.media_files import media_in
from langchain_gemma_jax.models.sources.read_unchanged import read_unchanged
from langchain_gemma_jax.models.storage.asked_storage import AskedStorage, exact
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.torchax.asked import is_for_torchax, refuse_for_torchax
from langchain_gemma_jax.models.torchax.read_template import images_apart_in
from langchain_gemma_jax.models.vision.model_media import ModelMedia
from langchain_gemma_jax.models.weights import total_bytes
from langchain_gemma_jax.private.freed_memory import give_back
from langchain_gemma_jax.reentry import Inside
from langchain_gemma_jax.stopping import Stop

_loading = Inside("it loaded a model")  # which takes locks, on files too, that a signal handler would wait for


@_loading.here()
def load(
    source: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    recipe: Recipe | None = None,
    weights: str | None = None,
    activations: str | None = None,
    device: jax.Device | Placement | None = None,
    devices: int | str | None = None,
    replica: int = 0,
    among: Sequence[jax.Device] | None = None,
    fits: Callable[[LoadPlan], Fit] | None = None,
    progress: bool | None = None,
    planned: Callable[[LoadPlan], None] | None = None,
    like: Model | None = None,
    trust_remote_code: bool = False,
    stop: Stop | None = None,
) -> Model:
    """Load a Gemma, ready to run.

        model = load("sprout-m")
        model = load("google/gemma-3-1b-it")
        model = load("./my-tuned-gemma", dtype="float32")
        model = load("./gemma-3-4b-it-Q4_K_M.gguf")
        model = load("torchax:Qwen/Qwen3-0.6B")

    Args:
        source: an embedded model's name, a folder (Hugging Face safetensors, or Orbax), a GGUF file, or a model's id
            on the Hugging Face Hub, with ":" and a quantisation or a file's name behind it for a GGUF file there;
            or "ollama:" and the name of a model that Ollama has fetched; or "torchax:" and a folder or an id, for a
            model of another family, run by transformers' code. A string that names a folder or a file means that one.
        dtype: of the matrices on the device, "bfloat16", "float32" or "float16". The checkpoint's own by default,
            but float32 for a float16 one: Gemma's activations can pass float16's range. Norm scales are float32 always.
        revision: on the Hub: a branch, tag or commit.
        token: on the Hub, for gated models. By default the one that huggingface_hub finds. A folder needs none.
        recipe: how matrices lie in memory and are multiplied, and so their dtype. By default the fastest
            on this machine.
        weights: how matrices are stored, where the files have them dense: "int8" or "int4", packed while they are read
            (8.5 or 4.5 bits a number). By default as they are in the files.
        activations: what packed matrices are multiplied by: "float32", or "int8", rounded to eight bits first. By
            default "int8" where the package's kernels multiply, which are faster so; else "float32".
        device: where the weights go, a device or a placement. By default the first device of JAX.
        devices: instead, among how many devices they are divided; "auto": the fewest on which they fit.
        replica: how many others of the same model there are on other devices: those are left to them.
        among: the devices that ``devices`` and ``replica`` are about. By default those of this process.
        fits: what "auto" goes by: what a plan needs of each device, and what each has. By default, its weights alone.
        progress: whether to draw a progress bar. By default, if standard error is a terminal.
        planned: called as soon as it is known what the model will be, before its weights are read.
        like: the same model, loaded before and closed: only its weights are read again, from a folder.
        trust_remote_code: whether Python files in the folder of a model "torchax:..." may be run. They are not, and a
            model that needs them is refused, unless this is True.
        stop: how another thread can end it while its files are fetched.

    Raises:
        InputError: an argument is not possible. DevicesError: so many devices are not.
        CheckpointError: the files cannot be used. The subclass says why.
        HubError: the model could not be fetched.
        ForkedError: this process was forked from one that had used JAX.
        ReentrantCallError: a signal handler calls this while its thread loads a model.

    Nothing stays on the device after an error.
    """
    ancestry.refuse_forked()
    if is_for_torchax(source, like):
        from langchain_gemma_jax.models.torchax.loading import load_torch_model

        refuse_for_torchax(recipe=recipe, weights=weights, activations=activations)
        return load_torch_model(
            source,
            dtype=dtype,
            revision=revision,
            token=token,
            device=device,
            devices=checked_devices(devices, device),
            replica=replica,
            fits=fits,
            progress=progress,
            planned=planned,
            like=like,
            trust_remote_code=trust_remote_code,
            stop=stop,
        )
    if trust_remote_code:
        raise InputError('trust_remote_code=True: only a model "torchax:..." can have code of its own. Leave it out.')
    if like is not None:
        return _load_again(like, Path(source), progress=progress, planned=planned)
    asked = asked_dtype(dtype, recipe)
    checked_activations(activations)
    devices = checked_devices(devices, device)
    found = find_files(source, revision=revision, token=token, progress=progress, stop=stop)
    path, name = found.path, found.name
    here = list(jax.local_devices() if among is None else among)[
        replica * (devices if isinstance(devices, int) else 1) :
    ]
    first = placement_of(here[0] if replica else device)
    files = Unchanged.now(path)
    with _open(path, found.encoders) as opened:
        config, tensors, naming = opened.config, opened.tensors, opened.naming
        dtype = asked or opened.default_dtype(first)
        # What is small and can be wrong comes before what is large.
        tokenizer, digest = opened.tokenizer()
        generation_defaults = {**opened.generation_defaults(), **found.defaults}
        spoken, templated, images_apart = opened.spoken(tokenizer), opened.templated, opened.images_apart
        if templated is not None:
            templated = templated or found.templated
        media = opened.media(tokenizer, files)
        architecture = Gemma(config, () if media is None else media.encoders)

        def plan_at(where: Placement) -> LoadPlan:
            divided = not where.one_device
            asked_storage = AskedStorage(weights, activations, divided)
            if recipe is None:
                stored = exact(opened.recipe(choose_recipe(dtype, divided=divided), asked_storage))
            else:
                stored = opened.recipe(recipe, asked_storage.beside(recipe))
            return LoadPlan(name, architecture, stored, tokenizer, where, files)

        if devices is None:
            plan = plan_at(first)
        else:
            plan, chosen = plan_for(devices, name, partial(why_not, config), plan_at, fits or weights_alone, here)
            tree = plan.recipe.abstract(config)
            seeing = 0 if media is None else media.nbytes_of_all(plan.recipe.dtype)
            whole = beyond_its_share(plan.placement, tree) + encoders_on_each(plan.placement, seeing)
            plan = replace(plan, chosen=chosen + whole)
        recipe, where = plan.recipe, plan.placement
        if planned is not None:
            planned(plan)
        with loading_bar(name, total_bytes(recipe.abstract(config)), progress=progress) as advance:
            read = partial(place, tensors, naming, config, dtype, recipe.layout, where, advance, recipe.storage)
            params = read_unchanged(read, files)
    known = ReadFrom(files, digest)
    return Model(
        architecture,
        params,
        tokenizer,
        recipe,
        name,
        generation_defaults,
        spoken,
        templated,
        placed=where,
        read_from=known,
        encoders=media,
        images_apart=images_apart,
    )


def _load_again(
    like: Model, folder: Path, *, progress: bool | None, planned: Callable[[LoadPlan], None] | None
) -> Model:
    files = Unchanged.now(folder)
    with _open(folder) as opened:
        config, tensors, naming = opened.config, opened.tensors, opened.naming
        if (other := _what_is_other(like, opened, files)) is not None:
            advice = "Unload it, and load it anew."
            raise CheckpointError(folder, f"the model {like.name!r} that was loaded before", other, advice)
        recipe, where = like.recipe, like.placement
        if planned is not None:
            planned(LoadPlan(like.name, like.architecture, recipe, like.tokenizer, where, files))
        with loading_bar(like.name, like.nbytes, progress=progress) as advance:
            read = partial(place, tensors, naming, config, recipe.dtype, recipe.layout, where, advance, recipe.storage)
            params = read_unchanged(read, files)
    return replace(like, params=params)


def _what_is_other(like: Model, opened: _Opened, files: Unchanged) -> str | None:
    """What would not fit to weights that are read from these files. None: all that is kept of a model fits."""
    if (
        opened.config != like.config
        or opened.recipe(like.recipe, AskedStorage(None, None, not like.placement.one_device)) != like.recipe
    ):
        return "another one"
    before = like.read_from
    if before is None or before.files == files:
        return None
    if opened.generation_defaults() != like.generation_defaults:
        return f"another {GENERATION_DEFAULTS} than its own"
    return None if opened.tokenizer()[1] == before.tokenizer else "another tokenizer than its own"


class _Opened(ABC):
    """A model's files, open and checked: all but its weights, which are read from ``tensors``."""

    config: ModelConfig
    tensors: TensorSource
    naming: Naming

    @abstractmethod
    def default_dtype(self, where: Placement) -> str:
        """The dtype that products are taken in if nobody asks for another."""

    @abstractmethod
    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        """The tokenizer, and a digest of it."""

    @abstractmethod
    def generation_defaults(self) -> Mapping[str, object]:
        """What its authors recommend for generating."""

    def spoken(self, tokenizer: Tokenizer) -> str | None:  # noqa: ARG002  folders leave it to the vocabulary
        """The chat format that the files name, if they do."""
        return None

    @property
    def templated(self) -> bool | None:
        """Whether the files have a chat template. None: that is looked for when somebody chats."""
        return None

    @property
    def images_apart(self) -> bool:
        """Whether the files' chat template has empty lines around images."""
        return False

    def media(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:  # noqa: ARG002  not every format has
        """What the model can see and hear. None: it reads text alone."""
        return None

    @abstractmethod
    def recipe(self, recipe: Recipe, asked: AskedStorage) -> Recipe:
        """The recipe, with the storage that the files or the caller ask for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tensors.close()


class _OpenedFolder(_Opened):
    """A folder with safetensors, or Orbax."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        said = quantisation_of(folder)
        self.config, self.tensors, self.naming = open_folder(folder) if said is None else open_quantised(folder, said)

    def default_dtype(self, where: Placement) -> str:
        if isinstance(self.tensors, MobileSource):
            return _of_unpacked(where)
        return default_dtype(self.tensors, self.naming, self.config)

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        return load_tokenizer(self.folder), tokenizer_digest(self.folder)

    def generation_defaults(self) -> Mapping[str, object]:
        return generation_defaults_in(self.folder)

    @property
    def images_apart(self) -> bool:
        return images_apart_in(self.folder)

    def media(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
        if isinstance(self.tensors, TowerSource):  # which is an Orbax checkpoint's
            from langchain_gemma_jax.models.sources.orbax_media import orbax_media

            return orbax_media(self.folder, self.tensors, self.config, tokenizer, files)
        return media_in(self.folder, self.config, tokenizer, files)

    def recipe(self, recipe: Recipe, asked: AskedStorage) -> Recipe:
        if isinstance(self.tensors, BlockSource | MobileSource):
            return asked.as_in_file(self.tensors, self.naming, self.config, recipe)
        return asked.of_dense(recipe, self.tensors)


class _OpenedGguf(_Opened):
    """A GGUF file, whose matrices stay as they are in it."""

    def __init__(self, path: Path, encoders: Path | None = None) -> None:
        """``encoders``: the mmproj file, where something else than its folder says which one it is."""
        self.path, self._made, self._encoders = path, open_gguf(path), encoders
        self.config, self.tensors, self.naming = self._made.config, self._made.tensors, self._made.naming
        self._vocabulary: tuple[Tokenizer, bytes] | None = None

    def default_dtype(self, where: Placement) -> str:
        stored = self._made.dtype
        if stored is None:
            return _of_unpacked(where)
        return "float32" if stored == "float16" else stored

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        if self._vocabulary is None:
            self._vocabulary = gguf_tokenizer(self._made.metadata, self.path, self.config.vocab_size)
            self._made.metadata.forget_strings()  # there is to be room for the weights
            give_back()
        return self._vocabulary

    def spoken(self, tokenizer: Tokenizer) -> str | None:
        return self._made.spoken(tokenizer.control_tokens)

    @property
    def templated(self) -> bool | None:
        return self._made.templated

    @property
    def images_apart(self) -> bool:
        return self._made.images_apart

    def media(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:  # noqa: ARG002  it has files of its own
        return encoders_beside(self.path, self._encoders, self.config, tokenizer)

    def generation_defaults(self) -> Mapping[str, object]:
        return sampling_defaults(self._made.metadata)

    def recipe(self, recipe: Recipe, asked: AskedStorage) -> Recipe:
        return asked.as_in_file(self._made.tensors, self.naming, self.config, recipe)


def _of_unpacked(where: Placement) -> str:
    """The dtype of products: XLA:CPU multiplies by what it unpacked faster in float32, and loses nothing so."""
    return "float32" if where.platform == "cpu" else "bfloat16"


def _open(path: Path, encoders: Path | None = None) -> _Opened:
    if path.is_file():
        return _OpenedGguf(path, encoders)
    return _OpenedGguf(found) if (found := only_gguf(path)) is not None else _OpenedFolder(path)


def asked_dtype(dtype: str | None, recipe: Recipe | None) -> str | None:
    """The dtype that a caller asked for, by itself or with a recipe. None: with neither.

    Raises:
        InputError: there is no such dtype, or it is not the recipe's; or the recipe's cache has an impossible one.
    """
    if dtype is not None and dtype not in ITEM_BYTES:
        raise InputError(f"dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {dtype!r}.")
    if recipe is not None and dtype not in {None, recipe.dtype}:
        raise InputError(f"dtype={dtype!r} was asked for, with a recipe for {recipe.dtype}. Leave one of them out.")
    if recipe is not None and recipe.kv_dtype not in ITEM_BYTES:
        raise InputError(f"cache_dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {recipe.cache_dtype!r}.")
    return dtype if recipe is None else recipe.dtype
