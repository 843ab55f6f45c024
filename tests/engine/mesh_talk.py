"""A process with eight simulated devices, in which an engine serves tiny models that are divided among some of them.

    python tests/engine/mesh_talk.py '{"folder": "...", "runs": [["folder", 4, 3, 2]]}'

A run is a model (``folder``, one of ``CONFIGS``, or ``gguf`` and one of those that are written as such files), how
many devices it is on, how many conversations it has, and how often it leaves the memory and comes back. Prints a line
of JSON.
"""

from __future__ import annotations

import gc
import json
import math
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from langchain_gemma_jax import Ladders, Sampling
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.pages import SLACK
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.conversations.transfer_costs import TransferCosts
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import DevicesError, InputError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.media_encoder import Sight
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice
from langchain_gemma_jax.models.seams.weights import map_specs
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests import family_folder
from tests.engine.faults_support import Fault, injected, resource_exhausted
from tests.engine.seeing import ColdSight, picture, seeing, spans_of
from tests.engine.tiny import CONFIGS, CONTEXT, Cold, settle, text
from tests.parity.media_models import NEW_TOKENS
from tests.seeing_gemma import add_sight

LADDERS = Ladders(chunks=(16,), capacities=(64, CONTEXT), rows=(1, 2), draft=4)


def main(
    folder: str,
    runs: Sequence[Sequence[Any]] = (),
    loop_steps: int = 1,
    replicas: Sequence[int] | None = None,
    *,
    warm: bool = False,
    shown: Sequence[Sequence[Any]] = (),
    family: Sequence[Sequence[Any]] = (),
) -> dict[str, object]:
    """Have the conversations."""
    jax.config.update("jax_transfer_guard", "disallow")
    if family:
        return {f"{name} on {count}": of_the_family(folder, name, count) for name, count in family}
    if shown:
        return {
            f"{name} on {count}, {sight}": with_pictures(folder, name, count, sight) for name, count, sight in shown
        }
    if replicas is not None:
        return with_replicas(folder, *replicas)
    return {f"{name} on {count}": run(folder, name, count, loop_steps, *more, warm=warm) for name, count, *more in runs}


def run(
    folder: str, name: str, count: int, loop_steps: int, seeds: int, cycles: int, faults: int = 0, *, warm: bool = False
) -> dict[str, object]:
    """Return the answers of one model in one place; with ``warm``, all its programs are made beforehand."""
    before = on_each()
    settings = Settings(
        ladders=LADDERS, guards="raise", drafts=True, host_kv_bytes=2**20, loop_steps=loop_steps, max_context=CONTEXT
    )
    engine = Engine(settings)
    divided: Model | None = None
    if name == "folder" or name.startswith("gguf "):
        source = folder if name == "folder" else written(folder, name.removeprefix("gguf "))
        # Kernels, which round activations, run on one device alone: here neither side rounds.
        exact = {} if name == "folder" else {"activations": "float32"}
        alone = load(source, dtype="float32", **exact)
        served = engine.load(source, dtype="float32", devices=count, **exact)
    else:
        alone, divided = made_up(name, folder, None), made_up(name, folder, DeviceMesh(tuple(jax.devices()[:count])))
        served = engine.serve(divided)
    if warm:
        engine.warmup(served, progress=False)
    cold = Cold(alone)
    for seed in range(seeds):
        converse(engine, served, cold, random.Random(seed))
    cold.check()
    settle(engine)
    runner = engine._owner.models.runners[served]
    report = engine.report()
    found = {
        "checked": cold.checked,
        "ties": cold.ties,
        "reused": report.reused_tokens,
        "accepted": report.accepted_tokens,
        "drafted": report.drafted_tokens,
        "seen": len(runner.device.seen),
        "bound": len(runner.device.bound),
        "misses": report.cache_misses,
        "weights": bytes_of(jax.tree.leaves(served.model.params))[:count],
        "foretold": engine._owner.models.known[served].entry.weights,
        "kv": engine._owner.models.known[served].entry.floor,  # the whole pool
        "kv on each": kv_on_each(runner.kv_store.held),
        "status": str(engine.models()[0]),
    }
    del runner
    if faults:
        found["faults"] = full_at(engine, served, cold, folder, faults)
    if cycles:
        found["after each cycle"] = come_and_go(engine, served, cycles)
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    for model in (alone, divided):
        if model is not None:
            model.close()
    del served, cold
    found["left"] = [now - then for now, then in zip(on_each(), before, strict=True)]
    return found


def full_at(engine: Engine, served: Served, cold: Cold, folder: str, most: int) -> dict[str, object]:
    """Have one device's memory be full at the Nth call of it, for N up to so many, while two requests run.

    A model on another device has a conversation meanwhile, which is none of its business. Gives how often it was
    full, how many answers came all the same, and what lies on each device once nothing is idle: each time the same.
    """
    runners, last = engine._owner.models.runners, SingleDevice(jax.devices()[-1])
    other = made_up("all global", folder, last)
    beside = engine.serve(other)
    greedy, rng = Sampling(max_tokens=4, ignore_eos=True), random.Random(17)
    engine.submit(beside, text(rng, 30), greedy).result()
    settle(engine)
    raised, answered, held, stays = 0, 0, set(), True
    for number in range(1, most + 1):
        prompts = [text(rng, 30), text(rng, 21)]
        fault = Fault(resource_exhausted, lambda call, _name, _key, number=number: call == number)  # type: ignore[misc]
        with injected(fault):
            given = [engine.submit(served, prompt, greedy) for prompt in prompts]
            for prompt, each in zip(prompts, given, strict=True):
                cold.expect(prompt, each.result(), f"full at {number}")
                answered += 1
        raised += fault.raised
        engine._owner.call(runners[served].kv_store.evict_idle)
        settle(engine)
        stays &= runners[beside].kv_store.held.nbytes() > 0
        held.add(tuple(on_each()))
    cold.check()
    engine.unload(beside)
    other.close()
    retries = engine.report().memory_retries
    return {"raised": raised, "answered": answered, "retries": retries, "held": len(held), "the other stays": stays}


def with_replicas(folder: str, replicas: int, devices: int, seeds: int) -> dict[str, object]:
    """Have several conversations at once with a model that has replicas, and say which of these had each."""
    before = on_each()
    # So small a model reads a conversation again as fast as it is fetched, or faster: times would decide.
    TransferCosts.worth_keeping = TransferCosts.worth_fetching = lambda *_: True  # type: ignore[method-assign]
    settings = Settings(ladders=LADDERS, guards="raise", host_kv_bytes=2**20, max_context=CONTEXT)
    engine = Engine(settings)
    alone = load(folder, dtype="float32")
    served = engine.load(folder, dtype="float32", devices=devices, replicas=replicas)
    models = engine._owner.models
    members = models.replicas[served]
    cold, rng, greedy = Cold(alone), random.Random(3), Sampling(max_tokens=4, ignore_eos=True)
    system = text(rng, 12)
    # Long enough that a conversation goes beside another one, and not in its place.
    talks = [system + text(rng, SLACK + rng.randint(4, 12)) for _ in range(seeds)]
    taken: list[list[int]] = [[] for _ in talks]
    for turn in range(3):
        given = [engine.submit(served, talk, greedy, system=len(system)) for talk in talks]
        for number, (talk, each) in enumerate(zip(talks, given, strict=True)):
            done = each.result()
            cold.expect(talk, done, f"turn {turn} of {number}")
            taken[number].append(members.index(each._request.asked.model))
            talk += [*done.ids, *text(rng, 5)]
        if turn == 0:
            engine.evict(served)  # all of them: conversations wait in host memory
            while any(models.known[member].entry.state is not State.ABSENT for member in members):
                engine._owner.call(lambda: None)
    cold.check()
    settle(engine)
    found: dict[str, object] = {
        "taken": taken,
        "checked": cold.checked,
        "reused": engine.report().reused_tokens,
        "homes": [[device.id for device in member.model.placement.devices] for member in members],
        "status": [str(status) for status in engine.models()],
    }
    with engine.hold(served):
        found["there"] = [len(models.runners), all(models.known[member].entry.holds == 1 for member in members)]
    engine.unload(served)
    found["known"] = len(engine.models())
    for wrong in ({"replicas": 9}, {"replicas": 3, "devices": 4}, {"replicas": True}):
        try:
            engine.load(folder, dtype="float32", **wrong)
        except (DevicesError, InputError) as error:
            found.setdefault("refused", []).append(str(error))  # type: ignore[attr-defined]
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    alone.close()
    del served, members, cold
    found["left"] = [now - then for now, then in zip(on_each(), before, strict=True)]
    return found


def with_pictures(folder: str, name: str, count: int, sight: str) -> dict[str, object]:
    """Have a conversation with two pictures, and once more: with a model on some devices, and with it on one."""
    before = on_each()
    engine = Engine(Settings(ladders=LADDERS, guards="raise", drafts=True, host_kv_bytes=2**20, max_context=CONTEXT))
    if name == "folder":
        source = add_sight(Path(shutil.copytree(folder, Path(folder, "seeing"))))
        alone = load(source, dtype="float32")
        several = engine.load(source, dtype="float32", devices=count)
        divided = several.model
    else:
        alone, divided = (
            seeing(made_up(name, folder, where), Sight(sight))
            for where in (None, DeviceMesh(tuple(jax.devices()[:count])))
        )
        several = engine.serve(divided)
    one, cold, rng = engine.serve(alone), ColdSight(alone), random.Random(5)
    greedy, same, encoded, reused = Sampling(max_tokens=4, ignore_eos=True), [], [], []
    for _ in range(2):
        spans: list[TokenSpan | MediaSpan] = [TokenSpan((2, *text(rng, 3)))]
        for turn in range(4):
            if turn in {0, 2}:
                spans += spans_of(alone, picture(turn))
            spans.append(TokenSpan(tuple(text(rng, 3))))
            prompt = Prompt(tuple(spans))
            answers = [engine.submit(served, prompt, greedy).result() for served in (one, several)]
            cold.check(prompt, answers[1], f"turn {turn}")
            same.append(answers[0].ids == answers[1].ids)
            reused.append(answers[0].reused_tokens == answers[1].reused_tokens)
            spans.append(TokenSpan(answers[1].ids))
        encoded.append(engine.report().media_encoded)
    kept = [[media.kept.get(span.digest) for media in (alone.encoders, divided.encoders)]
            for span in spans if isinstance(span, MediaSpan)]  # fmt: skip
    runner = engine._owner.models.runners[several]
    known = engine._owner.models.known[several].entry
    found = {
        "checked": cold.checked,
        "same": same,
        "reused": reused,
        "encoded": encoded,
        "apart": [float(np.abs(first - second).max() / np.ptp(first)) for first, second in kept],
        "tower": bytes_of(jax.tree.leaves([tree.parts() for tree in divided.encoders.loaded.values()])),
        "foretold": divided.encoders.nbytes_of(0, "float32"),
        "in the books": known.extra_bytes,
        "kinds": sorted({str(key[0]) for key in runner.device.seen}),
        "within the bound": runner.device.seen <= runner.device.bound,
        "status": [str(status) for status in engine.models()],
    }
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    del runner, known, one, several, cold
    alone.close()
    divided.close()
    del alone, divided, kept  # soft tokens that are kept are a view of what a simulated device shares with the host
    found["left"] = [now - then for now, then in zip(on_each(), before, strict=True)]
    return found


def of_the_family(folder: str, name: str, count: int) -> dict[str, object]:
    """Ask one of ``FAMILY`` on some devices about its picture: cold, again, and with the beginning of its answer."""
    place, before = Path(folder, f"{name} on {count}"), on_each()
    place.mkdir()
    family_folder.write(place, name)
    engine = Engine(Settings(ladders=LADDERS, guards="raise"))
    served = engine.load(str(place), dtype="float32", devices=count)
    prompt = family_folder.spans(served.model, name)
    theirs = family_folder.golden(name)["tokens"][-NEW_TOKENS:].tolist()
    asked, begun = Sampling(max_tokens=NEW_TOKENS, ignore_eos=True), TokenSpan(tuple(theirs[:20]))
    cold, again, longer = (
        engine.submit(served, Prompt(tuple(spans)), asked).result() for spans in (prompt, prompt, [*prompt, begun])
    )
    runner = engine._owner.models.runners[served]
    found = {
        "said": [
            list(cold.ids) == theirs,
            list(again.ids) == theirs,
            list(longer.ids)[: NEW_TOKENS - 20] == theirs[20:],
        ],
        "reused": longer.reused_tokens == len(Prompt(tuple(prompt))) + 19,
        "devices": len(served.model.placement.devices),
        "within the bound": runner.device.seen <= runner.device.bound,
    }
    if not engine.close(60):
        raise AssertionError("the engine did not close")
    del runner, served, prompt
    found["left"] = [now - then for now, then in zip(on_each(), before, strict=True)]
    return found


def written(folder: str, name: str) -> str:
    """A GGUF file in which values have more bits than the rest."""
    from tests.models.gguf import make

    path = Path(folder, "made-up.gguf")
    make.write(
        path,
        make.CONFIGS[name],
        lambda tensor: "Q6_K" if "attn_v" in tensor else "Q4_K",
        tokenizer=make.small_tokenizer(),
    )
    return str(path)


def made_up(name: str, folder: str, where: Placement | None) -> Model:
    """One of ``CONFIGS`` with random weights, the same numbers in any place."""
    config, recipe, numbers = CONFIGS[name], Recipe("float32"), np.random.default_rng(5)

    def array(spec: ArraySpec) -> np.ndarray:
        return numbers.normal(0, 0.4, spec.stored_shape).astype(np.float32)

    specs = abstract(config, "float32", recipe.layout)
    arrays = map_specs(array, specs)
    params = jax.device_put(arrays, jax.devices()[0]) if where is None else where.put(arrays, specs)
    return Model(Gemma(config), params, load_tokenizer(Path(folder)), recipe, name, placed=where)


def converse(engine: Engine, served: Served, cold: Cold, rng: random.Random) -> None:
    """Some turns, each behind what was said, or behind a part of it: two at once now and then."""
    talk = text(rng, rng.randint(3, 40))
    for _ in range(rng.randint(2, 4)):
        greedy = Sampling(max_tokens=rng.randint(1, 8), ignore_eos=True)
        prompts = [list(talk)]
        if rng.random() < 0.4:
            prompts.append(talk[: rng.randint(1, len(talk))] + text(rng, rng.randint(1, 9)))
        answers = [engine.submit(served, prompt, greedy) for prompt in prompts]
        for prompt, answer in zip(prompts, answers, strict=True):
            cold.expect(prompt, answer.result(), served.name)
        talk += answers[0].result().ids
        if rng.random() < 0.3:  # an edit
            talk = talk[: rng.randint(1, len(talk))]
        talk = (talk + text(rng, rng.randint(1, 20)))[: CONTEXT - 20]
        if rng.random() < 0.3:
            talk += talk[-3:] * 3  # which drafts go by
            talk = talk[: CONTEXT - 20]


def come_and_go(engine: Engine, served: Served, cycles: int) -> list[list[int]]:
    """Evict the model and have it back: what lies on each device, gone and there. Once to begin with."""
    found = []
    for _ in range(cycles + 1):
        engine.evict(served)
        while engine._owner.models.known[served].entry.state is not State.ABSENT:
            engine._owner.call(lambda: None)
        while (gone := on_each())[1:] != [0] * (len(jax.devices()) - 1):
            settle(engine)  # the owner thread may still have its runner in hand
        with engine.hold(served):
            found.append([*gone, *on_each()])
    return [list(each) for each in {tuple(each) for each in found[1:]}]


def kv_on_each(held: Any) -> list[int]:
    """The bytes of the pool, by device."""
    return bytes_of(jax.tree.leaves(held.arrays._pool))


def on_each() -> list[int]:
    """The bytes of all arrays, by device."""
    gc.collect()
    return bytes_of(jax.live_arrays())


def bytes_of(arrays: Sequence[jax.Array]) -> list[int]:
    """The bytes that each device holds of some arrays. Looking at their shards would make arrays of these."""
    found = dict.fromkeys(jax.devices(), 0)
    own = jax.devices()[0].default_memory().kind
    for array in arrays:
        if array.sharding.memory_kind != own:
            continue  # on the host
        for device in array.sharding.device_set:
            found[device] += math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
    return list(found.values())


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))  # noqa: T201
