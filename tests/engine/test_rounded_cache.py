"""Global layers' keys and values in eight bits: what comes of them is the same however they came to be there."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.kernels.products import kernels_run
from tests.engine.conversations.test_host_store import reading_is
from tests.engine.faults_support import SMALL
from tests.engine.tiny import kv_store_of, settle, text
from tests.models.gguf.make import CONFIGS, small_tokenizer, write

pytestmark = pytest.mark.skipif(not kernels_run(), reason="no kernels run here")
NAMES = ("gemma3", "gemma2", "gemma4, per-layer inputs and shared KV", "gemma4, the key as value")


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    """``file_of("gemma3")``: a GGUF file, whose products are taken by kernels: to the bit the same in any chunk."""
    folder, known = tmp_path_factory.mktemp("gguf"), {}

    def file_of(name):
        if name not in known:
            known[name] = folder / f"{len(known)}-Q8_0.gguf"
            write(known[name], CONFIGS[name], lambda _: "Q8_0", 3, tokenizer=small_tokenizer())
        return str(known[name])

    return file_of


def greedy(count):
    return Sampling(max_tokens=count, ignore_eos=True)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_reused_shared_and_parked_pages_give_the_tokens_of_a_cold_run(engine_of, file_of, rng, name):
    """Turns, branches of one beginning that run at once, and conversations that do not fit: all to the token."""
    head, tails = text(rng, 60), [text(rng, 9) for _ in range(4)]

    alone = engine_of(ladders=SMALL)
    plain = alone.load(file_of(name), cache_dtype="int8")
    alone.submit(plain, head, greedy(1)).result()
    held = kv_store_of(alone).held
    one = held.nbytes()
    layers = [layer for layer in held.arrays.pool.layers if layer is not None]
    kinds = [layer and (layer.window is None) for layer in held.shape.layout if layer is not None]
    assert [layer.rounded for layer in layers] == kinds, "the local ones stay as they are"

    engine = engine_of(ladders=SMALL, kv_bytes=3 * one, host_kv_bytes=40 * one)
    served = engine.load(file_of(name), cache_dtype="int8")
    reading_is(100.0, engine)
    talks = [[*head, *tail] for tail in tails]
    for turn in range(2):
        waiting = [engine.submit(served, talk, greedy(6)) for talk in talks]
        for number, (talk, one_answer) in enumerate(zip(talks, waiting, strict=True)):
            done = one_answer.result()
            cold = alone.submit(plain, talk, greedy(6), scope=f"{number} {turn}").result()  # which shares nothing
            assert (done.ids, cold.reused_tokens) == (cold.ids, 0), (number, turn)
            talk += [*done.ids, *text(rng, 5)]
        for _ in range(3):
            engine.submit(served, text(rng, 60), greedy(1)).result()
    settle(engine)
    report = engine.report()
    assert report.reused_tokens > 200
    assert report.parked > 0 < report.restored


@pytest.mark.long
def test_the_books_count_the_smaller_pages_and_kinds_share_a_process(engine_of, file_of, rng):
    """Two caches of one file at once: each has its own tokens and its own bytes."""
    engine, prompt = engine_of(ladders=SMALL), text(rng, 90)
    plain, small = (engine.load(file_of("gemma3"), **how) for how in ({}, {"cache_dtype": "int8"}))
    assert plain is not small
    first = [engine.submit(served, prompt, greedy(8)).result().ids for served in (plain, small)]
    again = [engine.submit(served, prompt, greedy(8)).result() for served in (plain, small)]
    assert [done.ids for done in again] == first
    assert all(done.reused_tokens == len(prompt) - 1 for done in again)
    whole, less = (engine._owner.models.runners[served].kv_store.held for served in (plain, small))
    slots, heads, dim = whole.shape.pages.slots, 2, 64
    assert whole.sizes.local == less.sizes.local
    assert whole.sizes.whole - less.sizes.whole == slots * heads * 2 * (2 * dim - (dim + 4)), "sixteen bits are eight"
    assert less.nbytes() < whole.nbytes()


def test_what_keeps_no_context_is_refused(engine_of, file_of):
    with pytest.raises(InputError, match="cache_dtype: expected one of int8 or None, found 'int4'"):
        engine_of().load(file_of("gemma3"), cache_dtype="int4")
