"""Tiny models, engines that share what was compiled for them, and the answers of a cold run.

Compiling is what costs here. Engines of the same model share one set of jitted programs, and XLA
is told to spend little on making them fast.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import model_estimate
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.program_key import ProgramKey, without_adapters
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, ReadyProgram, Tally, Waited
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.engine.faults_support import SMALL, greedy
from tests.engine.residents_support import PROMPT, folders_in, need_of
from tests.engine.tiny import CONFIGS, LADDERS, RECIPES, TIE, Cold
from tests.tiny_gemma import tiny_gemma


@pytest.fixture(scope="package", autouse=True)
def _quick_compiles() -> Iterator[None]:
    """Here alone: what a model computes is tested with every optimization."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="package", autouse=True)
def _small_pages() -> Iterator[None]:
    """Pages of eight tokens, so that tiny conversations have many."""
    patch = pytest.MonkeyPatch()
    patch.setattr(model_estimate, "PAGE", 8)
    yield
    patch.undo()


@pytest.fixture
def strict_transfers() -> Iterator[None]:
    """Nothing is copied to, from or between devices unless it says so, in any thread."""
    before = jax.config.jax_transfer_guard or "allow"
    jax.config.update("jax_transfer_guard", "disallow")
    yield
    jax.config.update("jax_transfer_guard", before)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    """A tiny Gemma's files: window 8, 128 tokens."""
    folder: Path = tmp_path_factory.mktemp("tiny-gemma")
    for name, content in tiny_gemma().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def model_of(tiny_folder) -> Callable[[str], Model]:
    """``model_of("all global")``: one of ``CONFIGS`` with random weights, float32. The same object each time.

    Its weights are large, so that what a token attends to decides what comes next.
    """
    tokenizer = load_tokenizer(tiny_folder)
    known: dict[str, Model] = {}

    def model_of(name: str) -> Model:
        if name not in known:
            config, recipe = CONFIGS[name], RECIPES.get(name, Recipe(dtype="float32"))
            numbers = np.random.default_rng(5)

            def array(spec: ArraySpec) -> jax.Array:
                return jax.device_put(numbers.normal(0, 0.4, spec.stored_shape).astype(np.float32), jax.devices()[0])

            specs = abstract(config, "float32", recipe.layout)
            params = jax.tree.map(array, specs, is_leaf=lambda leaf: isinstance(leaf, ArraySpec))
            known[name] = Model(Gemma(config), params, tokenizer, recipe, name)
        return known[name]

    return model_of


@pytest.fixture(scope="session")
def tiny_model(model_of) -> Model:
    """The usual one: a local and a global layer."""
    return model_of("local and global")


def _is_step(key: ProgramKey) -> bool:
    return without_adapters(key)[0][0] == "step"


class SharedLibrary(Library):
    """One that has no store, and most of its programs from another one: all but those that make steps in a loop."""

    def __init__(self, programs: Programs, common: Library) -> None:
        super().__init__(programs, None, Tally())
        self._common = common

    def of(self, key: ProgramKey, waited: Waited | None = None) -> Callable[..., object]:
        return super().of(key, waited) if _is_step(key) else self._common.of(key, waited)

    def make(self, key: ProgramKey) -> ReadyProgram:
        return super().make(key) if _is_step(key) else self._common.make(key)


@pytest.fixture(scope="session")
def _compiled() -> Callable[..., Library]:
    known: dict[tuple[Shape, Placement], Library] = {}

    def library_of(programs: Programs, *_: object) -> Library:
        shape, where = programs.shape, programs.placement
        plain = replace(shape, loop_steps=1)
        if (plain, where) not in known:
            known[plain, where] = Library(Programs(plain, where), None, Tally())
        if (shape, where) not in known:
            known[shape, where] = SharedLibrary(programs, known[plain, where])
        return known[shape, where]

    return library_of


@pytest.fixture
def engine_of(monkeypatch, _compiled, strict_transfers) -> Iterator[Callable[..., Engine]]:
    """``engine_of(loop_steps=4)``: a fresh engine with these settings, closed at the end; programs are shared."""
    monkeypatch.setattr(libraries, "library_of", _compiled)
    # Costs of checks stay as they are guessed. In this process, beside others, they are something else each time.
    monkeypatch.setattr(RowCosts, "note", lambda *_: None)
    made: list[Engine] = []

    def engine_of(**settings: object) -> Engine:
        values: dict[str, object] = {"ladders": LADDERS, "guards": "raise", "drafts": False, "host_kv_bytes": 0}
        made.append(Engine(Settings(**(values | settings))))  # type: ignore[arg-type]
        return made[-1]

    yield engine_of
    for engine in made:
        assert engine.close(30)


@pytest.fixture(scope="session")
def cold_of(model_of) -> Callable[[str], Cold]:
    """``cold_of("all global")``: the oracle of that model."""
    known: dict[str, Cold] = {}

    def cold_of(name: str = "local and global") -> Cold:
        if name not in known:
            known[name] = Cold(model_of(name))
        return known[name]

    return cold_of


@pytest.fixture
def cold(cold_of) -> Iterator[Cold]:
    """The usual model's oracle. What waits is checked at the end of the test; ties are printed."""
    oracle: Cold = cold_of()
    checked, ties = oracle.checked, oracle.ties
    yield oracle
    oracle.check()
    if oracle.ties > ties:
        print(f"{oracle.ties - ties} of {oracle.checked - checked} tokens tie within {TIE}: either was right")  # noqa: T201  for whoever reads the log


@pytest.fixture
def rng(request) -> random.Random:
    """Random numbers. The seed is printed; ENGINE_TEST_SEED=... repeats a run."""
    seed = int(os.environ.get("ENGINE_TEST_SEED", "20240607"))
    print(f"ENGINE_TEST_SEED={seed}")  # noqa: T201
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """Three models of one shape with other weights."""
    return folders_in(tmp_path_factory.mktemp("models"))


@pytest.fixture
def fitting(engine_of, folders) -> Callable[..., Engine]:
    """``fitting(2)``: an engine whose budget fits so many models."""

    def fitting(count, **settings):
        measuring = engine_of(ladders=SMALL)
        need = need_of(measuring, folders[0])
        measuring.close()
        return engine_of(ladders=SMALL, memory_budget=count * need + need // 2, **settings)

    return fitting


@pytest.fixture
def alone(engine_of, folders) -> list[tuple[int, ...]]:
    """Each model's answer to ``PROMPT``, in an engine where nothing is ever evicted."""
    engine = engine_of(ladders=SMALL)
    return [engine.submit(engine.load(folder), PROMPT, greedy(6)).result().ids for folder in folders]
