"""Requests with adapters: the tokens of merged weights, in steps with others, and no keys and values of another."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.adapters import base_of, check_adapter
from langchain_gemma_jax.engine.conversations import disk_arrays, disk_store
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.steps.adapter_slots import SLOTS
from langchain_gemma_jax.errors import DeviceMemoryError, InputError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.gemma.divided_gemma import DividedGemma
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import assemble
from tests.engine.conversations.test_host_store import SIZES, reading_is
from tests.engine.faults_support import SMALL, greedy
from tests.engine.residents_support import status
from tests.engine.tiny import BATCH, CONFIGS, LADDERS, Cold, text
from tests.models.adapters.files import ATTENTION, merged, peft_folder, random_pairs
from tests.models.int8 import Int8Storage, unpacked
from tests.tiny_gemma import tiny_gemma
from tests.waiting import until


def under(adapter, ids) -> Prompt:
    return Prompt.of_tokens(ids).under(adapter)


def merged_model(model: Model, pairs, scale: float) -> Model:
    params = merged(jax.tree.map(np.asarray, model.params), model.config, pairs, scale)
    return replace(model, params=jax.device_put(params, model.device), name="merged")


@pytest.mark.long
@pytest.mark.parametrize("name", ["local and global", "shared KV", "by kernels"])
def test_rows_with_two_adapters_and_none_get_the_tokens_of_each_alone(engine_of, model_of, rng, tmp_path, name):
    model, config = model_of(name), CONFIGS[name]
    engine = engine_of(ladders=BATCH)
    served = engine.serve(model)
    many = [random_pairs(config, 1, rank=3), random_pairs(config, 2, rank=20, targets=ATTENTION, size=0.2)]
    folders = [peft_folder(tmp_path / str(number), pairs, lora_alpha=6) for number, pairs in enumerate(many)]
    adapters = [None, *(engine.adapter(served, folder) for folder in folders)]
    scales = [6 / 3, 6 / 20]
    colds = [Cold(model), *(Cold(merged_model(model, *each)) for each in zip(many, scales, strict=True))]
    prompts = [text(rng, rng.randint(3, 40)) for _ in range(2)]
    asked = [(prompt, number) for prompt in prompts for number in range(3)]
    waiting = [engine.submit(served, under(adapters[number], prompt), greedy(10)) for prompt, number in asked]
    together = [each.result() for each in waiting]
    for (prompt, number), completion in zip(asked, together, strict=True):
        colds[number].expect(prompt, completion, f"adapter {number}")
        assert completion.reused_tokens == 0, "nobody else's keys and values"
    for cold in colds:
        cold.check()
    assert len({completion.ids for completion in together}) > len(prompts), "adapters change answers"
    assert engine.report().steps < sum(len(each.ids) for each in together), "they share steps"
    for (prompt, number), before in zip(asked, together, strict=True):
        again = engine.submit(served, under(adapters[number], [*prompt, *before.ids]), greedy(4)).result()
        assert again.reused_tokens >= len(prompt), "its own are"
        colds[number].expect([*prompt, *before.ids], again)
    for cold in colds:
        cold.check()


def adapters_of(engine, served, folder, count, **how):
    """Make random adapters of a model."""
    pairs = [random_pairs(served.model.config, seed, **how) for seed in range(count)]
    return [engine.adapter(served, peft_folder(folder / f"lora{n}", each)) for n, each in enumerate(pairs)]


def slots_of(engine):
    (runner,) = engine._owner.models.runners.values()
    return runner.rows._adapters


@pytest.mark.long
def test_more_adapters_than_slots_take_turns_and_the_rank_grows(engine_of, tiny_model, rng, tmp_path):
    engine = engine_of(ladders=BATCH)
    served = engine.serve(tiny_model)
    prompts = [text(rng, 20) for _ in range(SLOTS + 2)]
    adapters = adapters_of(engine, served, tmp_path, SLOTS + 2, rank=4)
    assert engine.adapter(served, tmp_path / "lora0") is adapters[0], "read once"
    alone = [
        engine.submit(served, under(*each), greedy(6)).result().ids for each in zip(adapters, prompts, strict=True)
    ]
    assert [each.name for each in slots_of(engine)._slots] == [f"lora{n}" for n in range(2, SLOTS + 2)]
    # All at once: two wait until slots are free. Nobody gets another's numbers.
    for _ in range(3):
        order = rng.sample(range(SLOTS + 2), SLOTS + 2)
        waiting = {n: engine.submit(served, under(adapters[n], [*prompts[n], 9]), greedy(6)) for n in order}
        again = {n: engine.submit(served, under(adapters[n], prompts[n]), greedy(6)) for n in order}
        assert [again[n].result().ids for n in range(SLOTS + 2)] == alone
        assert all(each.result().ids for each in waiting.values())
    bound = engine.report().program_bound
    slots = slots_of(engine)
    assert slots.stacked == (SLOTS, 8)
    before, small = slots.nbytes, status(engine, served)
    assert small.weights == served.model.nbytes + before
    assert small.adapters == tuple(each.name for each in slots._slots)
    (large,) = [engine.adapter(served, peft_folder(tmp_path / "large", random_pairs(tiny_model.config, 99, 30)))]
    assert engine.submit(served, under(large, prompts[0]), greedy(6)).result().ids
    assert slots.stacked == (SLOTS, 32)
    assert slots.nbytes == 4 * before == status(engine, served).weights - served.model.nbytes
    assert engine.report().program_bound > bound
    names = [each.name for each in slots._slots]
    assert engine.submit(served, under(adapters[-1], prompts[-1]), greedy(6)).result().ids == alone[-1]
    assert ("large" in names, len(names)) == (True, SLOTS)
    assert not slots._users


@pytest.mark.long
def test_an_engine_without_adapters_has_todays_programs_and_no_stacks(engine_of, tiny_model, rng, tmp_path):
    engine = engine_of(ladders=BATCH)
    served = engine.serve(tiny_model)
    assert engine.submit(served, text(rng, 20), greedy(3)).result().ids
    report, weights = engine.report(), status(engine, served).weights
    assert (slots_of(engine).nbytes, weights) == (0, served.model.nbytes)
    assert report.program_bound == BATCH.for_context(tiny_model.config.max_context).programs().total
    (adapter,) = adapters_of(engine, served, tmp_path, 1)
    assert engine.report().program_bound == report.program_bound, "reading one changes nothing on the device"
    ran = set(engine._owner.models.runners[served].device.seen)
    assert engine.submit(served, under(adapter, text(rng, 20)), greedy(3)).result().ids
    added = engine._owner.models.runners[served].device.seen - ran
    assert {str(key[0]) for key in added} == {"adapted_read", "adapted_step", "put_adapter"}


@pytest.mark.long
def test_reuse_never_crosses_adapters_on_the_device_parked_or_on_disk(engine_of, rng, tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_store, "WORTH_IT", 16)
    monkeypatch.setattr(disk_arrays, "BLOCK", 16)
    monkeypatch.setattr(disk_store, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(disk_store, "LOOK_SECONDS", 0.001)
    (tmp_path / "model").mkdir()
    for name, content in tiny_gemma().items():
        (tmp_path / "model" / name).write_bytes(content)
    history = text(rng, 60)

    def process(**settings):
        engine = engine_of(ladders=SMALL, **settings)
        served = engine.load(tmp_path / "model")
        reading_is(100.0, engine)
        return engine, served, [None, *adapters_of(engine, served, tmp_path, 2)]

    def ask(engine, served, adapter, tokens):
        return engine.submit(served, under(adapter, tokens), greedy(5), system=30).result()

    engine, served, adapters = process()
    wanted = [ask(engine, served, each, history) for each in adapters]
    assert [each.reused_tokens for each in wanted] == [0, 0, 0]
    assert len({each.ids for each in wanted}) == 3
    assert engine.close(30)

    # Parked: the pool has room for fewer, and each comes back to its own adapter alone.
    engine, served, adapters = process(kv_bytes=32 * SIZES.whole, host_kv_bytes=2**30, max_snapshots=1)
    for _ in range(3):
        found = [ask(engine, served, each, history) for each in adapters]
        assert [each.ids for each in found] == [each.ids for each in wanted]
    assert engine.report().restored >= 3
    assert all(each.reused_tokens >= len(history) - 1 for each in found)
    assert engine.close(30)

    # On the disk, for another process.
    for turn in range(3):
        engine, served, adapters = process(prefix_store="1GB")
        for runner in engine._owner.models.runners.values():
            until(lambda disk=runner.kv_store.disk_store: disk._there_is.prefixes is not None)
        found = ask(engine, served, adapters[turn], history)
        assert (found.ids, found.reused_tokens) == (wanted[turn].ids, 0)
        again = ask(engine, served, adapters[turn], [*history, *found.ids])
        assert again.reused_tokens >= len(history)
        until(lambda engine=engine: engine.report().prefixes_written >= 1)
        assert engine.close(30)
    engine, served, adapters = process(prefix_store="1GB")
    for runner in engine._owner.models.runners.values():
        until(lambda disk=runner.kv_store.disk_store: disk._there_is.prefixes is not None)
    for adapter, before in zip(adapters, wanted, strict=True):
        found = ask(engine, served, adapter, history)
        assert (found.ids, found.reused_tokens > 0) == (before.ids, True)


@pytest.mark.long
def test_adapters_leave_with_their_model_and_come_back_with_it(engine_of, fitting, folders, rng, tmp_path):
    measuring = fitting(1)
    served = measuring.load(folders[0])
    (adapter,) = adapters_of(measuring, served, tmp_path, 1)
    prompt = text(rng, 30)
    alone = measuring.submit(served, under(adapter, prompt), greedy(6)).result().ids
    stacks = slots_of(measuring).nbytes
    need = measuring._owner.models.known[served].entry.need
    assert measuring.close(30)

    engine = engine_of(ladders=SMALL, memory_budget=need + stacks)
    one, two = (engine.load(folder) for folder in folders[:2])
    for _ in range(2):
        assert engine.submit(one, under(adapter, prompt), greedy(6)).result().ids == alone
        assert status(engine, one).adapters == ("lora0",)
        assert status(engine, one).weights == one.model.nbytes + stacks
        assert engine.submit(two, prompt, greedy(3)).result().ids
        assert (status(engine, one).resident, status(engine, one).adapters) == (False, ())
    assert engine.close(30)

    engine = engine_of(ladders=SMALL, memory_budget=need + stacks - 1)
    served = engine.load(folders[0])
    assert engine.submit(served, prompt, greedy(3)).result().ids
    with pytest.raises(DeviceMemoryError):
        engine.submit(served, under(adapter, prompt), greedy(6)).result()
    assert engine.submit(served, prompt, greedy(3)).result().ids, "others are answered"


@pytest.mark.long
def test_packed_weights_take_adapters_as_their_dense_twins_do(engine_of, tiny_model, rng, tmp_path):
    recipe = Recipe("float32", storage=Int8Storage())

    def packed(path, spec):
        array = tiny_model.params[path[0]] if len(path) == 1 else tiny_model.params["layers"][path[1]][path[2]]
        if len(spec.shape) < 2:
            return array
        return jax.device_put(recipe.storage.pack(path, spec, np.asarray(array)), tiny_model.device)

    params = assemble((path, packed(path, spec)) for path, spec in walk(abstract(tiny_model.config, "float32")))
    model = Model(tiny_model.architecture, params, tiny_model.tokenizer, recipe, "packed")
    plain = Recipe("float32")
    dense = Model(model.architecture, unpacked(params, model.config, plain), model.tokenizer, plain, "dense")
    pairs = random_pairs(model.config, 3, rank=5)
    cold, bare = Cold(merged_model(dense, pairs, 2.0)), Cold(dense)
    engine = engine_of(ladders=BATCH)
    served = engine.serve(model)
    adapter = engine.adapter(served, peft_folder(tmp_path, pairs))
    prompts = [text(rng, rng.randint(3, 40)) for _ in range(4)]
    waiting = [(p, a, engine.submit(served, under(a, p), greedy(8))) for p in prompts for a in (None, adapter)]
    for prompt, own, generation in waiting:
        (bare if own is None else cold).expect(prompt, generation.result())
    cold.check()
    bare.check()


@pytest.mark.long
def test_drafts_and_grammars_and_lost_stacks_change_no_answer(engine_of, tiny_model, rng, tmp_path):
    plain = engine_of(ladders=LADDERS)
    prompts = [text(rng, 6) * 4 for _ in range(3)]
    served = plain.serve(tiny_model)
    adapters = adapters_of(plain, served, tmp_path, 3)
    wanted = [
        plain.submit(served, under(*each), greedy(12)).result().ids for each in zip(adapters, prompts, strict=True)
    ]
    drafting = engine_of(ladders=LADDERS, drafts=True)
    served = drafting.serve(tiny_model)
    for _ in range(2):
        for adapter, prompt, ids in zip(adapters, prompts, wanted, strict=True):
            assert drafting.submit(served, under(adapter, prompt), greedy(12)).result().ids == ids
    assert drafting.report().accepted_tokens > 0
    # Steps in a loop on the device.
    looping = engine_of(ladders=SMALL, loop_steps=4)
    served = looping.serve(tiny_model)
    waiting = [looping.submit(served, under(*each), greedy(12)) for each in zip(adapters, prompts, strict=True)]
    assert [each.result().ids for each in waiting] == wanted
    # Without the stacks, as after a failure, they are made again.
    looping._owner.call(slots_of(looping).forget)
    assert looping.submit(served, under(adapters[1], prompts[1]), greedy(12)).result().ids == wanted[1]


def test_models_that_take_none_say_why(engine_of, tiny_model, rng, tmp_path):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    (adapter,) = adapters_of(engine, served, tmp_path, 1)
    with pytest.raises(InputError, match="expected one from"):
        engine.submit(served, under(cast("Any", SimpleNamespace(digest=b"x")), [5, 6]), greedy(2))
    other = replace(tiny_model, architecture=Gemma(tiny_model.config.replace(width=24)))
    with pytest.raises(InputError, match="another model"):
        check_adapter(other, adapter)
    two = cast("Any", SimpleNamespace(one_device=False, devices=(1, 2)))
    with pytest.raises(UnsupportedModelError, match="2 devices"):
        base_of(replace(tiny_model, placed=two))
    with pytest.raises(UnsupportedModelError, match="takes no adapter"):
        base_of(replace(tiny_model, architecture=DividedGemma(tiny_model.config, cast("Any", None), ())))
