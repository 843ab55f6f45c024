"""Pictures in the engine: encoded once, read whole, told apart, accounted, and never seen in an answer's speed."""

from __future__ import annotations

import random
import threading
from itertools import pairwise

import pytest

from langchain_gemma_jax import DeviceMemoryError, Sampling
from langchain_gemma_jax.engine.requests.prompt import Prompt, TokenSpan
from langchain_gemma_jax.models.seams.media_encoder import Sight
from tests.engine.seeing import BEFORE, SOFT, ColdSight, picture, seeing, spans_of
from tests.engine.tiny import CONTEXT, text


def greedy(tokens):
    return Sampling(max_tokens=tokens, ignore_eos=True)


@pytest.fixture
def sees(tiny_model):
    model = seeing(tiny_model)
    yield model
    model.encoders.close()


def ask(engine, served, spans, tokens=3, scope="", **more):
    return engine.submit(served, Prompt(tuple(spans)), greedy(tokens), scope=scope, **more).result()


def ten_turns(engine, served, model, scope, *, cold=None):
    """A conversation of ten turns with three pictures: what was read of each turn, beside what was new."""
    rng, spans, before = random.Random(1), [TokenSpan((2,))], 0
    for turn in range(10):
        spans.append(TokenSpan(tuple(text(rng, 2))))
        if turn in {0, 4, 7}:
            spans += spans_of(model, picture(turn))
        spans.append(TokenSpan(tuple(text(rng, 1))))
        prompt, encoded = Prompt(tuple(spans)), engine.report().media_encoded
        done = ask(engine, served, spans, tokens=1, scope=scope)
        assert done.reused_tokens == before, turn
        assert done.media_tokens == SOFT * (1 + (turn >= 4) + (turn >= 7))
        if cold is not None:
            assert engine.report().media_encoded - encoded == (turn in {0, 4, 7})
            cold.check(prompt, done, f"turn {turn}")
        before = len(prompt)
        spans.append(TokenSpan(done.ids))


@pytest.mark.long
def test_ten_turns_with_three_pictures_encode_each_once_and_read_only_what_is_new(engine_of, sees):
    engine = engine_of()
    served = engine.serve(sees)
    assert sees.encoders.loaded == {}, "nothing is read before a picture comes"
    ten_turns(engine, served, sees, "a", cold=ColdSight(sees))
    first = engine.report()
    ten_turns(engine, served, sees, "b")  # which shares no keys and values with the first
    second = engine.report()
    assert (first.media_encoded, second.media_encoded) == (3, 3)
    assert second.compiles == first.compiles
    assert second.programs == first.programs <= first.program_bound
    assert first.media_tokens == 3 * SOFT


@pytest.mark.long
def test_the_same_picture_is_taken_over_and_another_of_its_size_shares_nothing(engine_of, sees):
    engine = engine_of()
    served, words = engine.serve(sees), TokenSpan((2, 20, 21))
    first = [words, *spans_of(sees, picture(1)), TokenSpan((22, 23))]
    other = [words, *spans_of(sees, picture(2)), TokenSpan((22, 23))]
    cold, again, seen = (ask(engine, served, spans) for spans in (first, first, other))
    assert (cold.reused_tokens, again.reused_tokens) == (0, len(Prompt(tuple(first))) - 1)
    assert seen.reused_tokens in {0, 3 + len(BEFORE)}, "as much as is worth a copy, up to the picture"
    assert again.ids == cold.ids
    assert engine.report().media_encoded == 2
    # In front of another text it is read again, and not encoded.
    moved = ask(engine, served, [TokenSpan((2, 30)), *spans_of(sees, picture(1)), TokenSpan((22,))])
    assert moved.reused_tokens == 0
    assert engine.report().media_encoded == 2


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
@pytest.mark.long
def test_random_conversations_with_pictures_equal_cold_runs(count, engine_of, tiny_model):
    """Branches, retries, neighbors, drafts and evictions: nothing of it changes an answer."""
    for sight in Sight:
        model = seeing(tiny_model, sight)
        cold = ColdSight(model)
        for drafts in (False, True):
            engine = engine_of(drafts=drafts, kv_bytes=300_000)
            served = engine.serve(model)
            _talk(engine, served, model, cold, random.Random(count), max(1, count // 6))
        model.encoders.close()
        assert cold.checked > count


def _talk(engine, served, model, cold, rng, conversations):
    for number in range(conversations):
        spans = [TokenSpan((2, *text(rng, rng.randint(0, 9))))]
        for _ in range(3):
            asked = []
            for _ in range(rng.randint(1, 3)):
                branch = [*spans]
                if rng.random() < 0.6:
                    branch += spans_of(model, picture(rng.randint(0, 4)))
                branch.append(TokenSpan(tuple(text(rng, rng.randint(1, 6)))))
                prompt = Prompt(tuple(branch))
                if len(prompt) < CONTEXT - 8:
                    scope = f"{rng.randint(0, 1)}"
                    asked.append((branch, engine.submit(served, prompt, greedy(rng.randint(1, 6)), scope=scope)))
            for branch, generation in asked:
                done = generation.result()
                cold.check(Prompt(tuple(branch)), done, f"conversation {number}")
                spans = [*branch, TokenSpan(done.ids)]


@pytest.mark.long
def test_others_make_tokens_while_a_picture_is_encoded(engine_of, sees):
    engine = engine_of()
    served = engine.serve(sees)
    ask(
        engine, served, [TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,))]
    )  # programs and weights are there
    runner, order = next(iter(engine._owner.models.runners.values())), []
    real = runner.device.run

    def run(key, *args, **kwargs):
        order.append(key[0])
        return real(key, *args, **kwargs)

    runner.device.run = run
    talker = engine.submit(served, (2, 20, 21), greedy(60))
    pieces = iter(talker)
    next(pieces)
    ask(engine, served, [TokenSpan((2,)), *spans_of(sees, picture(9)), TokenSpan((20,))])
    assert sum(len(piece.ids) for piece in pieces) == 59
    encoding = [at for at, kind in enumerate(order) if str(kind).startswith("encode")]
    assert [order[at] for at in encoding] == ["encode_begin", "encode_layer", "encode_layer", "encode_end"]
    assert all("step" in order[first:last] for first, last in pairwise(encoding))


def test_the_encoder_is_in_the_books_and_leaves_with_its_model(engine_of, sees):
    engine = engine_of()
    served = engine.serve(sees)
    (before,) = engine.models()
    prompt = [TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,))]
    ask(engine, served, prompt)
    (during,) = engine.models()
    assert during.weights - before.weights == sees.encoders.nbytes == sees.encoders.nbytes_of(0, "float32") > 0
    engine.unload(served)
    sees.encoders.close()
    assert sees.encoders.nbytes == 0
    served = engine.serve(sees)
    ask(engine, served, [TokenSpan((2,)), *spans_of(sees, picture(5)), TokenSpan((20,))])
    assert sees.encoders.nbytes > 0, "read again"


def test_an_encoder_that_cannot_be_read_is_its_requests_error_and_the_next_one_tries_again(engine_of, sees):
    engine = engine_of()
    served, real = engine.serve(sees), sees.encoders.open
    prompt = [TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,))]

    def broken():
        raise OSError("the disk is gone")

    sees.encoders.open = broken
    with pytest.raises(Exception, match="the disk is gone"):
        ask(engine, served, prompt)
    sees.encoders.open = real
    assert len(ask(engine, served, prompt).ids) == 3
    (status,) = engine.models()
    assert status.weights - sees.nbytes == sees.encoders.nbytes, "what was not read is not counted"


@pytest.mark.long
def test_no_room_for_the_encoder_is_said_and_text_goes_on(engine_of, sees):
    engine = engine_of()
    served = engine.serve(sees)
    ask(engine, served, [TokenSpan((2, 20))])
    known = engine._models.known(served)
    free = engine._owner.evictor.ledger
    size = sees.encoders.nbytes_of(0, "float32")
    known.entry.workspace += free.budget(known.entry.home) - free.used(known.entry.home) - size + 1
    with pytest.raises(DeviceMemoryError):
        ask(engine, served, [TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,))])
    assert len(ask(engine, served, [TokenSpan((2, 20))]).ids) == 3


def test_a_cancelled_picture_leaves_nothing_half_done(engine_of, sees):
    engine = engine_of()
    served = engine.serve(sees)
    runner = next(iter(engine._owner.models.runners.values()))
    prompt = Prompt((TokenSpan((2,)), *spans_of(sees, picture(0)), TokenSpan((20,))))
    begun, go_on, real = threading.Event(), threading.Event(), runner.device.run

    def run(key, *args, **kwargs):
        if key[0] == "encode_layer":
            begun.set()
            assert go_on.wait(300)
        return real(key, *args, **kwargs)

    runner.device.run = run
    generation = engine.submit(served, prompt, greedy(3))
    assert begun.wait()
    generation.cancel()
    go_on.set()
    with pytest.raises(Exception, match="cancelled"):
        generation.result()
    assert ask(engine, served, prompt.spans).ids
    assert not runner.media._under_way
