"""Files of models for tests of the engine: the disk's, with steps of a load held up; or those of a model in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.mapped.array_file import ArrayFile, ArrayPlaces
from langchain_gemma_jax.models.seams.params import Advance, Params
from langchain_gemma_jax.models.seams.placement import Placement, placement_of
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.stopping import Stop


def nothing(*_: Any) -> None:
    """Do nothing."""


class FilesAround(ModelFiles):
    """The disk's files, with something done on the way.

    ``opening(source, stop)`` comes first, ``reading(plan)`` when room is reserved and no weight is read,
    ``done(params)`` when all are. ``recipe`` and ``where`` are those of every model.
    """

    def __init__(
        self,
        *,
        opening: Callable[..., object] = nothing,
        reading: Callable[[LoadPlan], object] = nothing,
        done: Callable[[Params], object] = nothing,
        recipe: Recipe | None = None,
        where: Placement | None = None,
    ) -> None:
        self.opening, self.reading, self.done, self.recipe, self.where = opening, reading, done, recipe, where

    def open(self, source: Any, how: HowToLoad, stop: Stop | None = None) -> Opened:
        self.opening(source, stop)
        return Around(super().open(source, how, stop), self)

    def open_again(self, like: Model) -> Opened:
        self.opening(like.name, None)
        return Around(super().open_again(like), self)


class Around(Opened):
    def __init__(self, opened: Opened, files: FilesAround) -> None:
        self.name, self.files, self._opened, self._around = opened.name, opened.files, opened, files

    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        at, own = self._opened.planned(how, self._around.recipe or recipe), self._around.where
        return at if own is None else lambda _: at(own)

    def planned_again(self, like: Model) -> LoadPlan:
        return self._opened.planned_again(like)

    def why_not(self, devices: int) -> str | None:
        return self._opened.why_not(devices)

    def places(self, plan: LoadPlan) -> ArrayPlaces | None:
        return self._opened.places(plan)

    def read(self, plan: LoadPlan, advance: Advance, mapped: ArrayFile | None = None) -> Params:
        self._around.reading(plan)
        params = self._opened.read(plan, advance, mapped)
        self._around.done(params)
        return params

    def close(self) -> None:
        self._opened.close()


class FilesOf(ModelFiles):
    """Files that hold one model: ``make()`` is it, with arrays of its own, each time that its weights are read."""

    def __init__(self, model: Model, make: Callable[[], Model], opening: Callable[..., object] = nothing) -> None:
        self.model, self.make, self.opening = model, make, opening

    def open(self, source: Any, how: HowToLoad, stop: Stop | None = None) -> Opened:
        self.opening(source, stop)
        return Given(self, Path(source))

    def open_again(self, like: Model) -> Opened:
        return Given(self, like.read_from.files.folder)


class Given(Opened):
    def __init__(self, files: FilesOf, folder: Path) -> None:
        self.name, self.files, self._of = files.model.name, Unchanged.now(folder), files

    def planned(self, how: HowToLoad, recipe: Recipe | None) -> Callable[[Placement], LoadPlan]:
        model = self._of.model
        plan = partial(LoadPlan, model.name, model.architecture, model.recipe, model.tokenizer, files=self.files)
        return lambda where: plan(placement=where, chat_format=model.chat_format, encoders=model.encoders)

    def planned_again(self, like: Model) -> LoadPlan:
        return self.planned(HowToLoad(), None)(like.placement or placement_of(None))

    def why_not(self, devices: int) -> str | None:
        return None

    def read(self, plan: LoadPlan, advance: Advance, mapped: ArrayFile | None = None) -> Params:
        return self._of.make().params

    def close(self) -> None:
        pass
