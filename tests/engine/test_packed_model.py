"""The engine serves weights that are stored in another way as it serves dense ones, and counts the bytes they take.

Int8 with a scale for each row stands for all that will come: nothing here or in the engine knows it by name.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.page_pool import Tables, page_bytes
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables import fingerprint
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.params import assemble
from langchain_gemma_jax.models.seams.weights import DENSE, total_bytes
from tests.engine.faults_support import SMALL
from tests.engine.model_files import FilesAround
from tests.engine.residents_support import baseline, constants, on_device, status
from tests.engine.tiny import BATCH, CONTEXT, kv_store_of, text
from tests.models.int8 import Int8, Int8Storage, unpacked

RECIPE = Recipe("float32", storage=Int8Storage())
PLAIN = replace(RECIPE, storage=DENSE)


def greedy(count: int) -> Sampling:
    return Sampling(max_tokens=count, ignore_eos=True)


@pytest.fixture(scope="module")
def twins(model_of):
    """The usual tiny model with its matrices packed, and the dense model that it then is."""
    model = model_of("local and global")

    def packed(path, spec):
        array = model.params[path[0]] if len(path) == 1 else model.params["layers"][path[1]][path[2]]
        if len(spec.shape) < 2:
            return array
        return jax.device_put(RECIPE.storage.pack(path, spec, np.asarray(array)), model.device)

    params = assemble((path, packed(path, spec)) for path, spec in walk(abstract(model.config, "float32")))
    dense = unpacked(params, model.config, PLAIN)
    return (
        Model(model.architecture, params, model.tokenizer, RECIPE, "packed"),
        Model(model.architecture, dense, model.tokenizer, PLAIN, "dense"),
    )


@pytest.mark.long
def test_whole_conversations_are_those_of_the_dense_twin(engine_of, twins, rng):
    """Chunks, reuse, branches, a batch of eight, drafts and a bound on KV: the same tokens everywhere."""
    heads = [text(rng, 20) for _ in range(4)]
    branches = [[heads[i % 4], text(rng, rng.randint(1, 20))] for i in range(8)]
    repeated = text(rng, 6) * 5

    def run(model):
        sizes = page_bytes(Gemma(model.config).cache_layout, "float32", 8)
        one = CONTEXT // 8 * sizes.whole
        engine = engine_of(drafts=True, kv_bytes=4 * one, ladders=BATCH)  # how it grows has nothing to do with weights
        served = engine.serve(model)
        said = [engine.submit(served, [*head], greedy(8)).result().ids for head in heads]
        waiting = [engine.submit(served, [*head, *more], greedy(12)) for head, more in branches]
        said += [one.result().ids for one in waiting]
        talk: list[int] = [*repeated]
        for _ in range(3):  # drafts find what was said before
            talk += engine.submit(served, talk, greedy(16)).result().ids
        report = engine.report()
        assert report.reused_tokens > 100
        assert report.drafted_tokens >= report.accepted_tokens > 10
        assert report.evictions > 0
        assert report.steps < sum(map(len, said))  # they shared some
        return [*said, talk]

    packed, dense = twins
    assert run(packed) == run(dense)


@pytest.mark.long
def test_the_books_hold_packed_bytes_and_a_model_that_was_evicted_comes_back(engine_of, folders):
    prompt = list(range(10, 40))

    def engine_with(**settings):
        engine = engine_of(ladders=SMALL, **settings)
        engine._loader._files = FilesAround(recipe=RECIPE)
        return engine

    engine, before = engine_with(), baseline()
    served = engine.load(folders[0])
    entry = engine._owner.models.known[served].entry
    assert isinstance(served.model.params["layers"][0]["qkv"], Int8)
    assert entry.weights == served.model.nbytes == total_bytes(RECIPE.abstract(served.model.config))
    assert status(engine, served).weights == on_device() - before - constants(engine)
    dense = total_bytes(PLAIN.abstract(served.model.config))
    assert entry.weights < 0.45 * dense
    alone = [engine.submit(engine.load(folder), prompt, greedy(6)).result().ids for folder in folders]
    assert len({tuple(ids) for ids in alone}) == 3
    need = entry.need
    assert engine.close(30)

    # A byte less than two dense models need.
    engine = engine_with(memory_budget=2 * (need + dense - entry.weights) - 1)
    one, two = (engine.load(folder) for folder in folders[:2])
    for served, expected in ((one, alone[0]), (two, alone[1])):
        assert engine.submit(served, prompt, greedy(6)).result().ids == expected
    assert engine.report().models_evicted == 0
    three = engine.load(folders[2])
    assert engine.submit(three, prompt, greedy(6)).result().ids == alone[2]
    assert [status(engine, served).resident for served in (one, two, three)] == [False, True, True]
    assert one.model.closed
    assert engine.submit(one, prompt, greedy(6)).result().ids == alone[0]  # read and packed again
    assert isinstance(one.model.params["layers"][0]["qkv"], Int8)
    assert engine.close(30)
    for served in (one, two, three):
        served.model.close()
    assert baseline() == before


@pytest.mark.long
def test_compiled_programs_are_kept_and_told_apart(twins, tmp_path):
    tmp_path.chmod(0o700)
    store, tally = Store(tmp_path / "programs"), Tally()
    packed, dense = twins
    key = ("read", 4, 32)
    counts = PageCounts(3, 3, 32)
    shapes = [Shape(model.architecture, model.recipe, 320, CONTEXT, counts, loop_steps=1) for model in twins]
    where = packed.placement
    assert len({fingerprint.family(shape, where) for shape in shapes}) == 2
    numbers = (
        np.array([[5, 6, 7, 0]], np.int32),
        np.zeros(1, np.int32),
        np.full(1, 3, np.int32),
        np.array(2, np.int32),
    )
    tables = Tables(np.ones((1, 1), np.int32), np.ones((1, 1), np.int32))
    found = []
    for shape, model in ((shapes[0], packed), (shapes[0], packed), (shapes[1], dense)):
        library = Library(Programs(shape, where), store, tally)
        pool = library.of(("empty",))()
        hidden, _, _ = library.of(key)(model.params, *where.put((*numbers, tables)), pool)
        found.append((np.asarray(hidden), library.make(key).loaded))
    assert [loaded for _, loaded in found] == [False, True, False]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][0], found[2][0], atol=1e-5)


def test_what_a_storage_traces_is_a_part_of_a_programs_name(twins, monkeypatch):
    shape, where = Shape(Gemma(twins[0].config), RECIPE, 320, CONTEXT, PageCounts(3, 3)), twins[0].placement
    name, digest = fingerprint.family(shape, where), fingerprint.module_digest
    monkeypatch.setattr(fingerprint, "module_digest", lambda module: "edited" if "int8" in module else digest(module))
    assert fingerprint.family(shape, where) != name


@pytest.mark.long
def test_the_caches_dtype_is_apart_from_the_weights(engine_of, twins, rng):
    half = replace(twins[0], recipe=replace(RECIPE, cache_dtype="bfloat16"))
    prompt, found = text(rng, 25), []
    for model in (twins[0], half):
        engine = engine_of(ladders=SMALL)
        ids = engine.submit(engine.serve(model), prompt, greedy(4)).result().ids
        held = kv_store_of(engine).held
        (resident,), layer = held.index.residents, held.arrays.pool.layers[0]
        pages = len(resident.whole) * held.sizes.whole + len(resident.local) * held.sizes.local
        found.append((str(layer.keys.dtype), str(layer.values.dtype), held.nbytes() == pages, len(ids)))
        known = engine._owner.models.known[engine._owner.models.served_as(model)]
        found.append(known.entry.floor - 4 * known.shape.pages.whole * known.shape.pages.slots)  # without the ids
    assert found[0] == ("float32", "float32", True, 4)
    assert found[2] == ("bfloat16", "bfloat16", True, 4)
    assert found[3] == found[1] // 2


@pytest.mark.long
def test_what_packed_weights_are_multiplied_by_makes_two_models_of_one_file(engine_of):
    engine = engine_of(ladders=SMALL)
    kinds = ("int8", "float32", "int8")
    served = [engine.load("sprout-s", weights="int8", activations=kind) for kind in kinds]
    assert served[0] is served[2] is not served[1]
    assert engine.status("sprout-s", weights="int8", activations="float32").resident
    assert engine.status("sprout-s", weights="int8") is None
