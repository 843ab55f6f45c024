"""Other families get from the engine what a Gemma gets: reuse, drafts, few programs, none in a second process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax import Ladders
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.models.loading.load import load
from tests.engine.fresh_process import answer, start
from tests.tiny_gemma import tiny_gemma
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]

LADDERS = Ladders(chunks=(16,), capacities=(128,), rows=(1, 4), draft=4)
RESIDENT = Path(__file__).with_name("resident.py")


def text(rng: random.Random, length: int) -> list[int]:
    return [rng.randrange(10, 300) for _ in range(length)]


@pytest.mark.parametrize("family", ["llama 3", "mistral"])  # with every position kept, and with rings
def test_a_hundred_conversations_that_go_on_are_those_that_begin_anew(family, tmp_path):
    save_model(tmp_path, family)
    engine, rng = Engine(Settings(ladders=LADDERS, guards="raise", drafts=False)), random.Random(5)
    greedy = Sampling(max_tokens=6, ignore_eos=True)
    try:
        with load(f"torchax:{tmp_path}") as model:
            served, said = engine.serve(model), {}
            for number in range(100):
                said[number] = text(rng, rng.randint(1, 30))
            for turn in range(3):
                going = {n: engine.submit(served, words, greedy, scope=f"kept {n}") for n, words in said.items()}
                anew = {n: engine.submit(served, words, greedy, scope=f"{turn} {n}") for n, words in said.items()}
                for number, words in said.items():
                    kept, cold = going[number].result(), anew[number].result()
                    assert kept.ids == cold.ids, (turn, number)
                    assert cold.reused_tokens == 0
                    assert turn == 0 or kept.reused_tokens > 0
                    said[number] = [*words, *kept.ids, *text(rng, rng.randint(1, 8))]
            report = engine.report()
            assert report.programs <= report.program_bound
    finally:
        engine.close(60)


def test_drafts_are_taken_and_change_nothing(tmp_path, monkeypatch):
    # What a check costs is measured, and on a machine that is busy meanwhile it may look too dear. Here it is a guess.
    monkeypatch.setattr(RowCosts, "note", lambda *_: None)
    module = save_model(tmp_path, "qwen 3")
    for name, parameter in module.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            parameter.data *= 0.01  # so what it says depends on the last word, and soon goes round
    module.save_pretrained(tmp_path)
    said = {}
    with load(f"torchax:{tmp_path}") as model:
        for drafts in (False, True):
            engine = Engine(Settings(ladders=LADDERS, guards="raise", drafts=drafts))
            try:
                greedy = Sampling(max_tokens=110, ignore_eos=True)
                served = engine.serve(model)
                if drafts:
                    engine.warmup(served, max_context=128)  # drafts wait for the program that checks them
                done = engine.submit(served, [20, 21, 22], greedy).result()
                said[drafts] = list(done.ids)
                assert (done.accepted_tokens > 10) == drafts
            finally:
                engine.close(60)
    assert said[True] == said[False]


def test_a_gemma_says_the_same_through_torchax_and_through_our_own_forward_pass(tmp_path):
    for name, content in tiny_gemma().items():
        (tmp_path / name).write_bytes(content)
    rng, greedy = random.Random(3), Sampling(max_tokens=40, ignore_eos=True, logprobs=True)
    prompts = [[2, *text(rng, length)] for length in (3, 20, 45)]
    said, scored = {}, {}
    for source in (str(tmp_path), f"torchax:{tmp_path}"):
        engine = Engine(Settings(ladders=LADDERS, guards="raise"))
        try:
            with load(source, dtype="float32") as model:
                assert (model.architecture.gemma is not None) == (source == str(tmp_path))
                served = engine.serve(model)
                done = [engine.submit(served, prompt, greedy).result() for prompt in prompts]
                said[source] = [list(one.ids) for one in done]
                scored[source] = np.array([[each.logprob for each in one.logprobs] for one in done], np.float32)
        finally:
            engine.close(60)
    own, through = said.values()
    assert own == through
    one, other = scored.values()
    assert np.abs(one - other).max() < 1e-4


def test_a_second_process_compiles_nothing(tmp_path):
    save_model(tmp_path, "llama 3")
    cache = tmp_path / "private" / "programs"
    cache.parent.mkdir(mode=0o700)
    source, quiet = f"torchax:{tmp_path}", {"PYTHONWARNINGS": "ignore"}
    first = answer(start(source, cache, **quiet), timeout=240)
    second = answer(start(source, cache, **quiet), timeout=240)
    assert first["compiles"] == first["misses"] == first["programs"] >= 4
    assert (second["compiles"], second["misses"]) == (0, 0)
    assert second["lowered"] <= 2, (
        "torchax seeds a generator of random numbers, by two operators, and no program is made"
    )
    assert second["hits"] == second["programs"]
    assert second["answers"] == first["answers"]


def test_what_torch_held_is_given_back(tmp_path):
    done = subprocess.run(
        [sys.executable, str(RESIDENT), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(RESIDENT.parents[2]), "GEMMA_JAX_COMPILE_CACHE": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["weights"] > 2e8
    assert 0.9 * found["weights"] < found["more"] < 1.1 * found["weights"], found
    assert found["most"] < 1.5 * found["weights"], "no second copy of all of it, at no time"
