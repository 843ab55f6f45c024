"""The number of programs has a bound that follows from the configuration, and nothing that a caller sends adds one."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from jax import monitoring

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import CompileCounter
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.kernels import library as kernel_library
from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from tests.engine.faults_support import greedy
from tests.engine.tiny import CONTEXT, settle, text

SMALL = Ladders(chunks=(8,), capacities=(32, CONTEXT), rows=(1, 2))
EDGES = (1, 2, 7, 8, 9, 23, 24, 25, 31, 32, 33, CONTEXT - 2, CONTEXT - 1)


@pytest.fixture
def compiles():
    """The programs that XLA compiles from here on, by the thread's name."""
    found: Counter[str] = Counter()

    def seen(event: str, duration: float, **_: str | int) -> None:
        if event == CompileCounter.COMPILED:
            found[threading.current_thread().name] += 1

    monitoring.register_event_duration_secs_listener(seen)
    yield found
    monitoring.unregister_event_duration_listener(seen)


def requests(rng, count):
    """Anything that a caller can ask for."""
    asked = []
    for _ in range(count):
        prompt = text(rng, rng.choice([rng.randint(1, CONTEXT - 1), rng.choice(EDGES)]))
        if rng.random() < 0.3:
            prompt = (prompt[:5] * CONTEXT)[: len(prompt)]  # which is drafted
        sampling = Sampling(
            temperature=rng.choice([0.0, 1e-300, 0.3, 1.0, 100.0, rng.random()]),
            top_k=rng.choice([0, 1, 40, 200, 2**31 - 1]),
            top_p=rng.choice([1.0, 0.9, 1e-6]),
            min_p=rng.choice([0.0, 0.05, 0.999]),
            repetition_penalty=rng.choice([1.0, 1.1, 100.0, 1e-30]),
            presence_penalty=rng.choice([0.0, 0.5, -100.0]),
            frequency_penalty=rng.choice([0.0, 0.5, 100.0]),
            seed=rng.choice([None, 0, -(2**63), 2**64 - 1, rng.getrandbits(63)]),
            logit_bias={rng.randrange(320): rng.uniform(-100, 100) for _ in range(rng.choice([0, 0, 1, 300]))},
            stop=tuple(
                "".join(chr(rng.randint(65, 90)) for _ in range(rng.randint(1, 40))) for _ in range(rng.randint(0, 5))
            ),
            stop_ids=tuple(rng.sample(range(320), rng.choice([0, 1, 64]))),
            max_tokens=rng.choice([1, 2, 5, 12]),
            logprobs=(logprobs := rng.random() < 0.3),
            top_logprobs=rng.choice([0, 1, 20]) if logprobs else 0,
            ignore_eos=rng.random() < 0.5,
            drafts=rng.random() < 0.8,
        )
        asked.append((prompt, sampling, rng.choice(["", "a", "\0 é 🦎" * 40]), rng.randint(0, len(prompt))))
    return asked


def run(engine, served, asked):
    """In groups, so that they meet in steps of every number of rows."""
    done = []
    for first in range(0, len(asked), 3):
        going = [
            engine.submit(served, prompt, sampling, scope=scope, system=system)
            for prompt, sampling, scope, system in asked[first : first + 3]
        ]
        done += [generation.result() for generation in going]
    settle(engine)
    return done


@pytest.mark.long
@pytest.mark.parametrize("count", [120, pytest.param(500, marks=pytest.mark.slow)])
def test_requests_compile_no_more_than_the_bound_and_a_second_pass_nothing(
    engine_of, tiny_model, rng, compiles, monkeypatch, count
):
    def fresh(programs: Programs, tally: Tally, *_: object) -> Library:
        return Library(programs, None, tally)

    monkeypatch.setattr(libraries, "library_of", fresh)  # so that each compile is seen
    engine = engine_of(ladders=SMALL, drafts=True)
    served = engine.serve(tiny_model)
    asked = requests(rng, count)
    done = run(engine, served, asked)
    first = engine.report()
    bound = SMALL.for_context(CONTEXT).programs().total
    assert (first.program_bound, first.guard_trips) == (bound, {})
    assert first.compiles == first.programs <= bound
    assert first.compiles == compiles["gemma-jax-engine"] == compiles.total()
    # What it says of the tokens is true as well.
    assert first.requests == count
    assert first.failed == first.preemptions == 0
    assert first.generated_tokens == sum(one.generated_tokens for one in done)
    assert first.reused_tokens == sum(one.reused_tokens for one in done) > 0
    assert first.prefilled_tokens == sum(one.prompt_tokens - one.reused_tokens for one in done)
    assert first.drafted_tokens == sum(one.drafted_tokens for one in done) > 0
    assert first.accepted_tokens == sum(one.accepted_tokens for one in done)
    assert {one.prompt_tokens for one in done} >= set(EDGES)

    engine.warmup(served)
    warm = engine.report()
    assert warm.programs == warm.compiles == bound  # the bound is no larger than it has to be
    run(engine, served, asked)
    run(engine, served, requests(rng, count // 10))
    last = engine.report()
    assert (last.programs, last.compiles) == (bound, bound)
    assert compiles.total() == bound


@pytest.mark.skipif(not kernels_run(), reason="no kernels run here")
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("by_kernels", "most"), [pytest.param(True, 6, id="kernels"), pytest.param(False, 24, id="no kernels")]
)
@pytest.mark.parametrize(
    ("count", "longest"), [(10, 2_048), pytest.param(500, 8_192, marks=pytest.mark.slow, id="500")]
)
def test_conversations_that_grow_to_any_length_need_few_programs(
    engine_of, model_of, rng, compiles, monkeypatch, by_kernels, most, count, longest
):
    def fresh(programs: Programs, tally: Tally, *_: object) -> Library:
        return Library(programs, None, tally)

    monkeypatch.setattr(libraries, "library_of", fresh)
    if not by_kernels:
        monkeypatch.setattr(kernel_library, "_known", kernel_library.Kernels(None, "GEMMA_JAX_KERNELS=off"))
    usual = model_of("by kernels")
    model = replace(usual, architecture=Gemma(usual.config.replace(max_context=longest)))
    engine = engine_of(ladders=None, drafts=True, max_waiting=1000)
    served = engine.serve(model)

    def converse(seed):
        numbers = random.Random(seed)
        # Most end early, as conversations do, and some near the longest context.
        last = min(int(longest ** numbers.uniform(0.4, 1.0)), longest - 40)
        ends = sorted(numbers.randint(1, last) for _ in range(10))
        context: list[int] = []
        for end in ends:
            new = text(numbers, max(1, end - len(context)))
            context += new if numbers.random() < 0.8 else (new[:5] * len(new))[: len(new)]  # which is drafted
            done = engine.submit(served, context, greedy(3), scope=str(seed)).result()
            context += done.ids
        return len(context)

    with ThreadPoolExecutor(4) as threads:
        lengths = list(threads.map(converse, (rng.random() for _ in range(count))))
    report = engine.report()
    assert report.compiles == report.programs == compiles["gemma-jax-engine"] == compiles.total()
    assert report.programs <= report.program_bound <= most
    assert (report.guard_trips, report.failed, report.requests) == ({}, 0, 10 * count)
    assert max(lengths) > longest // 8
    bound = Ladders().for_context(131_072)
    assert bound.programs(moves_pages=True).total <= 24
    assert bound.for_kernels(padding_is_free=True).programs(moves_pages=False).total <= 6


def test_a_program_that_is_on_no_ladder_is_refused_before_it_is_compiled(engine_of, tiny_model, compiles):
    from langchain_gemma_jax.errors import GuardError

    engine = engine_of(guards="raise")
    runner = engine._owner.models.runners[engine.serve(tiny_model)]
    memory = runner.kv_store
    with pytest.raises(GuardError, match=r"\('empty', 48\) is not on the ladders"):
        engine._owner.call(lambda: memory.held.arrays._run(("empty", 48)))
    assert engine.report().guard_trips == {"recompile": 1}
    assert not compiles
