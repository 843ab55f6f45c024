"""The end of an answer, the part of it that is shown, and prompts that do not fit."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.request import FinishReason, OnDevice, gaps
from langchain_gemma_jax.errors import ContextLengthError
from tests.engine.tiny import CONTEXT, text

LETTERS = dict.fromkeys(range(261), -100.0)  # nothing but capital letters
FIRST_LETTER = 261


def letters(**options):
    return Sampling(**({"logit_bias": LETTERS, "temperature": 0.6, "seed": 3, "max_tokens": 40} | options))


@pytest.fixture
def prompt(rng):
    return text(rng, 20)


# Lengths


@pytest.mark.long
@pytest.mark.parametrize("length", [1, 31, 32, 33, 63, 64, 65, CONTEXT - 2, CONTEXT - 1])
def test_prompts_of_every_length_get_an_answer_up_to_the_end_of_the_context(length, engine_of, tiny_model, cold, rng):
    engine = engine_of()
    prompt = text(rng, length)
    count = min(5, CONTEXT - length)
    done = engine.submit(engine.serve(tiny_model), prompt, Sampling(max_tokens=5, ignore_eos=True)).result()
    assert (len(done.ids), done.finish_reason, done.stop) == (count, FinishReason.LENGTH, None)
    assert (done.prompt_tokens, done.generated_tokens) == (length, count)
    cold.expect(prompt, done)


@pytest.mark.parametrize(("length", "excess"), [(CONTEXT, 1), (CONTEXT + 1, 2), (1000, 1000 - CONTEXT + 1)])
def test_a_prompt_that_does_not_fit_says_by_how_much(length, excess, engine_of, tiny_model, rng):
    engine = engine_of()
    with pytest.raises(ContextLengthError, match=f"{excess} too many") as raised:
        engine.submit(engine.serve(tiny_model), text(rng, length))
    assert (raised.value.excess, raised.value.tokens, raised.value.limit) == (excess, length, CONTEXT - 1)
    assert engine.report().requests == 0


@pytest.mark.long
@pytest.mark.parametrize("drafts", [False, True])
def test_without_a_limit_an_answer_ends_with_the_context(drafts, engine_of, tiny_model, cold, rng):
    engine = engine_of(drafts=drafts)
    served = engine.serve(tiny_model)
    for length in (60, 61, 62, 63):
        prompt = (text(rng, 5) * 20)[:length]
        done = engine.submit(served, prompt, Sampling(ignore_eos=True)).result()
        assert (len(done.ids), done.finish_reason) == (CONTEXT - length, FinishReason.LENGTH)
        assert (done.drafted_tokens > 0) is drafts
        cold.expect(prompt, done)


@pytest.mark.slow
def test_the_context_can_be_made_shorter_than_the_model_s(engine_of, tiny_model, rng):
    engine = engine_of(max_context=64)
    served = engine.serve(tiny_model)
    done = engine.submit(served, text(rng, 60), Sampling(ignore_eos=True)).result()
    assert (len(done.ids), done.finish_reason) == (4, FinishReason.LENGTH)
    with pytest.raises(ContextLengthError):
        engine.submit(served, text(rng, 64))


# Stops


def shown(generation):
    """The pieces' text as it was shown, and the completion."""
    pieces = [piece.text for piece in generation]
    return pieces, generation.result()


@pytest.mark.long
def test_a_stop_string_that_is_split_over_tokens_is_never_shown(engine_of, tiny_model, prompt):
    engine = engine_of()
    served = engine.serve(tiny_model)
    whole = engine.submit(served, prompt, letters()).result().text
    assert len(whole) == 40
    for size in (1, 2, 3, 7):
        for start in (0, 1, 11, 40 - size):
            stop = whole[start : start + size]
            end = whole.index(stop)
            pieces, done = shown(engine.submit(served, prompt, letters(stop=(stop, "never this"))))
            assert (done.text, done.stop, done.finish_reason) == (whole[:end], stop, FinishReason.STOP)
            assert "".join(pieces) == done.text
            assert len(done.ids) == end + size  # no token was made behind it


def test_text_that_only_began_like_a_stop_string_is_shown_after_all(engine_of, tiny_model, prompt):
    engine = engine_of()
    served = engine.serve(tiny_model)
    whole = engine.submit(served, prompt, letters()).result().text
    for start in (5, 37):
        almost = whole[start : start + 5] + "!"
        pieces, done = shown(engine.submit(served, prompt, letters(stop=(almost,))))
        assert (done.text, done.stop, done.finish_reason) == (whole, None, FinishReason.LENGTH)
        assert "".join(pieces) == whole
        assert pieces[start] == ""  # it was held back until the next one showed what it is


def test_stop_ids_and_the_end_of_turn_end_an_answer(engine_of, tiny_model, prompt):
    engine = engine_of()
    served = engine.serve(tiny_model)
    whole = engine.submit(served, prompt, letters()).result()
    stop = whole.ids[12]
    done = engine.submit(served, prompt, letters(stop_ids=(5, stop))).result()
    end = whole.ids.index(stop) + 1
    assert (done.ids, done.stop, done.finish_reason) == (whole.ids[:end], stop, FinishReason.STOP)

    eager = letters(logit_bias={1: 100.0}, temperature=0.0, max_tokens=3)
    done = engine.submit(served, prompt, eager).result()
    assert (done.ids, done.stop, done.finish_reason, done.text) == ((1,), 1, FinishReason.STOP, "")
    ignoring = letters(logit_bias={1: 100.0}, temperature=0.0, max_tokens=3, ignore_eos=True)
    done = engine.submit(served, prompt, ignoring).result()
    assert (done.ids, done.finish_reason) == ((1, 1, 1), FinishReason.LENGTH)


@pytest.mark.long
def test_half_a_character_waits_for_its_other_half(engine_of, tiny_model, prompt):
    engine = engine_of()
    served = engine.serve(tiny_model)
    first, second = (4 + byte for byte in "é".encode())
    only = {first: 100.0}
    pieces, done = shown(engine.submit(served, prompt, Sampling(logit_bias=only, max_tokens=2)))
    assert done.ids == (first, first)
    assert done.text == "".join(pieces) == "��"
    both = Sampling(logit_bias={first: 90.0, second: 90.0}, temperature=0.5, seed=1, max_tokens=60, ignore_eos=True)
    pieces, done = shown(engine.submit(served, prompt, both))
    whole = bytes(token - 4 for token in done.ids)
    assert done.text == "".join(pieces) == whole.decode(errors="replace")
    assert "é" in done.text
    stopped = engine.submit(
        served, prompt, Sampling(logit_bias=both.logit_bias, temperature=0.5, seed=1, max_tokens=60, stop=("é",))
    ).result()
    assert (stopped.text, stopped.stop) == (done.text[: done.text.index("é")], "é")


# Drafts


@pytest.fixture
def circle(rng):
    """A prompt that goes in circles, and sampling that goes on like it."""
    return (text(rng, 6) * 8)[:44]


@pytest.mark.long
def test_the_tokens_of_a_draft_add_up(engine_of, tiny_model, rng):
    engine = engine_of(drafts=True)
    served = engine.serve(tiny_model)
    for seed in range(10):
        before = engine.report()
        prompt = [*(text(rng, 4) * 10), FIRST_LETTER]
        only = {FIRST_LETTER: 100.0, FIRST_LETTER + 1: 94.0}  # mostly one letter over and over
        sampling = Sampling(logit_bias=only, temperature=1.0, seed=seed, max_tokens=50, ignore_eos=True)
        done = engine.submit(served, prompt, sampling).result()
        after = engine.report()
        assert 0 < done.accepted_tokens <= done.drafted_tokens
        # Each step makes a token, each verification one more than it accepts; the first token comes with the prompt.
        assert done.generated_tokens == 1 + after.steps - before.steps + done.accepted_tokens
        assert after.accepted_tokens - before.accepted_tokens == done.accepted_tokens
        assert after.drafted_tokens - before.drafted_tokens == done.drafted_tokens


@pytest.mark.long
def test_a_draft_ends_where_the_answer_does(engine_of, tiny_model, rng):
    drafting, plain = engine_of(drafts=True), engine_of()
    prompt = [*text(rng, 5), *[FIRST_LETTER] * 12]
    only = {FIRST_LETTER: 100.0, FIRST_LETTER + 1: 95.0}
    accepted = 0
    for limit in range(1, 24):
        sampling = Sampling(
            logit_bias=only,
            temperature=1.0,
            seed=limit,
            max_tokens=limit,
            ignore_eos=True,
            stop=("BA", "AAAAAAAAAAAAA"),
        )
        done, wanted = (
            engine.submit(engine.serve(tiny_model), prompt, sampling).result() for engine in (drafting, plain)
        )
        assert (done.ids, done.text, done.stop, done.finish_reason) == (
            wanted.ids,
            wanted.text,
            wanted.stop,
            wanted.finish_reason,
        )
        assert done.accepted_tokens < done.generated_tokens  # those behind a stop were not accepted
        assert done.drafted_tokens < limit or limit == 1 or done.accepted_tokens
        accepted += done.accepted_tokens
    assert accepted > 20


def test_drafts_that_are_never_right_are_given_up(engine_of, tiny_model, rng):
    engine = engine_of(drafts=True)
    served = engine.serve(tiny_model)
    dice = Sampling(logit_bias=dict.fromkeys(range(261, 266), 100.0), temperature=3.0, seed=5, ignore_eos=True)
    done = engine.submit(served, text(rng, 3), dice).result()
    assert done.generated_tokens == CONTEXT - 3
    assert 1 <= done.drafted_tokens < 60
    asked_not_to = Sampling(logit_bias={261: 100.0}, ignore_eos=True, drafts=False)
    assert engine.submit(served, text(rng, 3), asked_not_to).result().drafted_tokens == 0


# Logprobs


def test_logprobs_are_the_model_s_own_with_drafts_and_without(engine_of, tiny_model, cold, circle):
    for drafts in (False, True):
        engine = engine_of(drafts=drafts)
        sampling = Sampling(max_tokens=30, ignore_eos=True, logprobs=True, top_logprobs=3)
        generation = engine.submit(engine.serve(tiny_model), circle, sampling)
        pieces = list(generation)
        done = generation.result()
        assert tuple(detail for piece in pieces for detail in piece.logprobs) == done.logprobs
        assert [detail.id for detail in done.logprobs] == list(done.ids)
        assert all(len(detail.top) == 3 and detail.top[0][0] == detail.id for detail in done.logprobs)
        cold.expect(circle, done)


# Parts


def test_what_was_asked_never_changes_and_all_that_is_held_on_the_device_goes_with_the_end(engine_of, tiny_model, rng):
    engine = engine_of()
    generation = engine.submit(engine.serve(tiny_model), text(rng, 10), Sampling(max_tokens=3, ignore_eos=True))
    request, asked = generation._request, dict(vars(generation._request.asked))
    assert len(generation.result().ids) == 3
    assert vars(request.on_device) == vars(OnDevice())
    assert vars(request.asked) == asked
    with pytest.raises(FrozenInstanceError):
        request.asked.system = 3


def test_what_each_token_took_adds_up_to_the_time_behind_the_first():
    assert list(gaps([])) == list(gaps([5.0])) == []
    assert list(gaps([5.0, 5.5, 7.0])) == [0.5, 1.5]
    assert list(gaps([5.0, 5.0, 6.0, 6.0, 6.25])) == [0.0, 0.5, 0.5, 0.25], "what came together shares the time"
