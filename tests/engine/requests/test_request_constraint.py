"""Whatever a random model says under a grammar, it is whole and valid, however few tokens it may have."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from langchain_gemma_jax.dialects import CallBegin, CallEnd, Invalid, TokenParser, Tool, grammar_for, json_grammar
from langchain_gemma_jax.dialects.gemma4 import Gemma4
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.grammar.ending import Outline
from langchain_gemma_jax.engine.requests.request import FinishReason
from langchain_gemma_jax.errors import ContextLengthError, InputError, SchemaError, UnsupportedModelError
from langchain_gemma_jax.models.tokenizer import StreamDecoder
from tests.dialects.schemas import Schemas
from tests.dialects.walks import check
from tests.engine.speaking import speaking
from tests.engine.tiny import BATCH, CONTEXT, LADDERS, ONE_SIZE, text

PERSON = {
    "type": "object",
    "properties": {"NAME": {"type": "string"}, "AGE": {"type": "integer"}, "TAGS": {"type": "array"}},
    "required": ["NAME", "AGE"],
    "additionalProperties": False,
}
NUMBERS = {"type": "array", "items": {"type": "integer"}, "minItems": 2}
RING = Tool("RING", "", {"type": "object", "properties": {"TIMES": {"type": "integer"}, "WHO": {"type": "string"}}})
HOT = {"temperature": 2.0, "ignore_eos": False}


@pytest.fixture(scope="module")
def model(tiny_model, tmp_path_factory):
    return speaking(tiny_model, tmp_path_factory.mktemp("speaking"))


@pytest.fixture
def ask(engine_of, model):
    """``ask(grammar, max_tokens=5)``: a completion of a random prompt."""
    engine = engine_of()
    served = engine.serve(model)
    rng = random.Random(1)

    def ask(grammar, prompt=None, **options):
        return engine.submit(served, prompt or text(rng, 20), Sampling(grammar=grammar, **options)).result()

    ask.engine, ask.served = engine, served
    return ask


def shortest(grammar):
    outline = Outline(grammar)
    return outline.ending(outline.start)


@pytest.mark.parametrize("options", [{}, HOT, HOT | {"top_k": 40, "top_p": 0.9}, {"repetition_penalty": 1.5}], ids=str)
def test_a_random_model_gives_what_it_is_held_to(ask, options):
    for seed, most in enumerate((1, 3, 10, 30, 90)):
        done = ask(json_grammar(PERSON), max_tokens=most, seed=seed, **options)
        check(json.loads(done.text), PERSON)
        assert done.generated_tokens <= max(most, len(b'{"NAME": "", "AGE": 0}'))
        assert done.finish_reason in {FinishReason.STOP, FinishReason.LENGTH}


def test_of_too_few_tokens_the_shortest_text_is_made(ask):
    done = ask(json_grammar(PERSON), max_tokens=1)
    assert done.text == '{"NAME": "", "AGE": 0}' == shortest(json_grammar(PERSON))[0].decode()
    assert done.finish_reason is FinishReason.LENGTH
    assert done.forced_tokens == done.generated_tokens


def test_of_texts_that_are_as_short_the_model_chooses(ask):
    grammar = json_grammar({"enum": ["ABCDEFGH", "HGFEDCBA"]})
    prompt = text(random.Random(10), 20)
    found = {ask(grammar, prompt=prompt, max_tokens=1, temperature=3.0, seed=seed).text for seed in range(8)}
    assert found == {'"ABCDEFGH"', '"HGFEDCBA"'}


def test_what_has_no_alternative_needs_no_model(ask):
    done = ask(json_grammar({"const": {"A": [1, 2]}}))
    assert (json.loads(done.text), done.finish_reason, done.stop) == ({"A": [1, 2]}, FinishReason.STOP, None)
    assert done.forced_tokens == done.generated_tokens
    assert ask.engine.report().dispatches == 0


def test_forced_tokens_are_read_in_one_go(ask):
    properties = {name * 8: {"type": "boolean"} for name in "ABCD"}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    done = ask(json_grammar(schema))
    report = ask.engine.report()
    check(json.loads(done.text), schema)
    assert done.forced_tokens >= 40
    assert report.dispatches < 20  # a tenth of what steps would take
    assert report.forced_tokens == done.forced_tokens
    assert report.generated_tokens == done.generated_tokens


def test_what_is_forced_makes_room_for_itself(engine_of, model, monkeypatch, cold):
    """More than a conversation's memory had room for."""
    from langchain_gemma_jax.engine.conversations import kv_store

    monkeypatch.setattr(kv_store, "HEADROOM", 4)
    engine = engine_of()
    schema = {"type": "object", "properties": {"A": {"type": "boolean"}, "B" * 40: {"type": "boolean"}}}
    schema["required"] = list(schema["properties"])
    prompt = text(random.Random(11), 12)
    served = engine.serve(model)
    done = engine.submit(served, prompt, Sampling(grammar=json_grammar(schema))).result()
    check(json.loads(done.text), schema)
    assert done.forced_tokens > 40
    again = engine.submit(served, [*prompt, *done.ids, 5], Sampling(max_tokens=8, ignore_eos=True)).result()
    cold.expect([*prompt, *done.ids, 5], again)
    cold.check()


def test_where_a_text_can_go_on_the_model_says_whether_it_does(ask):
    lengths = {len(ask(json_grammar(NUMBERS), seed=seed, temperature=3.0, max_tokens=60).ids) for seed in range(8)}
    assert len(lengths) > 1
    done = ask(json_grammar({"type": "integer"}), seed=3, max_tokens=3, temperature=5.0)
    assert isinstance(json.loads(done.text), int)


@pytest.mark.parametrize("wary", [0, 10**6])
def test_the_end_of_a_turn_is_legal_where_the_text_is_whole_and_nowhere_else(ask, wary):
    ask.engine._models[ask.served].constraints.trust._wary_for = wary
    done = ask(json_grammar({"type": "integer", "minimum": 10}), logit_bias={1: 90.0}, max_tokens=12)
    assert (done.stop, done.finish_reason, len(done.text)) == (1, FinishReason.STOP, 2)


@pytest.mark.parametrize(
    "most", [1, 3, 8, 21, *(pytest.param(most, marks=pytest.mark.slow) for most in (2, 5, 13, 34, 55, 89))]
)
def test_endings_keep_to_the_number_of_tokens(ask, most):
    for schema in (PERSON, NUMBERS, {"type": "object", "additionalProperties": {"type": "array", "minItems": 3}}):
        grammar = json_grammar(schema)
        least = sum(map(len, shortest(grammar)))
        done = ask(grammar, max_tokens=most, seed=most, temperature=1.5)
        check(json.loads(done.text), schema)
        assert len(done.ids) <= max(most, least)


def test_the_context_is_a_limit_too(ask):
    grammar = json_grammar(PERSON)
    least = sum(map(len, shortest(grammar)))
    done = ask(grammar, prompt=[5] * (CONTEXT - least))
    assert json.loads(done.text) == {"NAME": "", "AGE": 0}
    done = ask(grammar, prompt=[5] * (CONTEXT - least - 9), temperature=2.0, seed=1)
    check(json.loads(done.text), PERSON)
    with pytest.raises(ContextLengthError) as caught:
        ask(grammar, prompt=[5] * (CONTEXT - least + 1))
    assert caught.value.excess == 1


@pytest.mark.parametrize(
    "settings", [{}, {"loop_steps": 24, "ladders": BATCH}, {"drafts": True}, {"ladders": ONE_SIZE}], ids=str
)
@pytest.mark.parametrize(
    "options",
    [{}, HOT | {"seed": 5, "top_k": 30, "min_p": 0.01}, pytest.param(HOT | {"seed": 4}, marks=pytest.mark.slow)],
    ids=str,
)
def test_masks_loops_drafts_and_neighbours_change_nothing(engine_of, model, settings, options):
    """With trust a token is drawn freely and looked at, without it under a mask: the same token."""
    prompt = (text(random.Random(2), 9) * 6)[:50]
    found = []
    for number, wary in enumerate((0, 10**6, 3)):
        engine = engine_of(**settings)
        served = engine.serve(model)
        trust = engine._models[served].constraints.trust
        trust._wary_for = wary
        sampling = Sampling(grammar=json_grammar(PERSON), max_tokens=50, **options)
        neighbours = [engine.submit(served, text(random.Random(n), 30), sampling) for n in range(2 * number)]
        found.append(engine.submit(served, prompt, sampling).result())
        for neighbour in neighbours:
            check(json.loads(neighbour.result().text), PERSON)
    assert len({one.ids for one in found}) == 1
    assert engine.report().guard_trips == {}


@pytest.mark.parametrize("options", [{}, HOT | {"seed": 6}], ids=str)
def test_a_mask_holds_for_one_token(engine_of, model, options):
    """What it allows the next one may not, or should not: of both kinds of letters here some are the same."""
    schema = {"type": "string", "pattern": "^([A-J][F-N0-9])+$"}
    found = set()
    for settings in ({}, {"loop_steps": 24}):
        engine = engine_of(**settings)
        served = engine.serve(model)
        engine._models[served].constraints.trust._wary_for = 10**6
        sampling = Sampling(grammar=json_grammar(schema), max_tokens=60, **options)
        done = engine.submit(served, text(random.Random(9), 20), sampling).result()
        check(json.loads(done.text), schema)
        found.add(done.ids)
    assert len(found) == 1


def test_greedy_tokens_are_the_best_of_those_that_are_legal(ask, cold):
    prompt = text(random.Random(3), 20)
    done = ask(json_grammar(NUMBERS), prompt=prompt, max_tokens=25, logprobs=True)
    (scores,) = cold.scores([[*prompt, *done.ids]])
    rule = ask.engine._models[ask.served].constraints.of(json_grammar(NUMBERS), frozenset({1, 288}), forces=False)
    for place, token in enumerate(done.ids):
        rule.illegal = True
        rule.prepare()
        rule.illegal = False
        legal = np.flatnonzero(np.unpackbits(rule.allowed.view(np.uint8), bitorder="little"))
        if not rule.take(token, len(done.ids) - place - 1):
            break  # from here on it is the shortest ending
        row = scores[len(prompt) + place - 1]
        assert row[token] >= row[legal].max() - 1e-3


def test_the_kv_behind_forced_and_refused_tokens_is_sound(ask, cold):
    """What a second turn takes over is what a cold run would have read."""
    prompt = text(random.Random(4), 30)
    first = ask(json_grammar(PERSON), prompt=prompt, max_tokens=40, temperature=1.5, seed=3)
    behind = [*prompt, *first.ids, *text(random.Random(5), 10)]
    second = ask(None, prompt=behind, max_tokens=12, ignore_eos=True)
    assert second.reused_tokens > len(prompt)
    cold.expect(behind, second)
    cold.check()


def test_what_a_grammar_appends_is_no_turn_to_go_back_to(ask):
    """Each would be a copy of the local layers. One is kept where the prompt ended, with what was appended at once."""
    properties = {name * 6: {"type": "boolean"} for name in "ABCDE"}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    prompt = text(random.Random(7), 40)  # its rings have wrapped
    ask(json_grammar(schema), prompt=prompt)
    (resident,) = ask.engine._models[ask.served].memory.index.residents
    assert [kept.end for kept in resident.snapshots if kept.end > len(prompt)] == [len(prompt) + len('{"AAAAAA":')]


def test_an_end_that_is_ignored_does_not_come_where_a_text_could_end(ask):
    counts = {
        len(ask(json_grammar({"type": "integer"}), seed=seed, temperature=4.0, max_tokens=9, ignore_eos=True).ids)
        for seed in range(6)
    }
    assert counts == {9}


def test_logprobs_are_there_for_every_token_and_nothing_is_forced(ask):
    done = ask(json_grammar(PERSON), max_tokens=30, logprobs=True, top_logprobs=2, seed=1, temperature=1.0)
    assert [one.id for one in done.logprobs] == list(done.ids)
    assert all(one.logprob < 0 for one in done.logprobs[:10])


def test_pieces_are_the_whole(ask):
    generation = ask.engine.submit(
        ask.served, text(random.Random(6), 9), Sampling(grammar=json_grammar(PERSON), max_tokens=40, temperature=1.5)
    )
    pieces = list(generation)
    done = generation.result()
    assert "".join(piece.text for piece in pieces) == done.text
    assert tuple(token for piece in pieces for token in piece.ids) == done.ids


def test_stop_strings_do_not_cut_a_value(ask):
    done = ask(json_grammar(PERSON), max_tokens=40, temperature=1.5, seed=2, stop=['"', "A", "0", "}"])
    check(json.loads(done.text), PERSON)


def test_a_stop_id_that_is_text_does_not_either(ask):
    brace = ask.served.model.tokenizer.encode_text("{")[0]
    done = ask(json_grammar(PERSON), max_tokens=40, temperature=1.5, seed=2, stop_ids=[brace])
    check(json.loads(done.text), PERSON)


# Turns


def events(model, ids, grammar=None):
    parser = TokenParser(Gemma4().parser(), StreamDecoder(model.tokenizer), model.tokenizer.control_name)
    found = [*parser.push(ids), *parser.finish()]
    assert not any(isinstance(event, Invalid) for event in found)
    return [event for event in found if isinstance(event, CallBegin | CallEnd)]


def towards(model, name):
    """A bias by which a random model says a control token sooner or later."""
    return {model.tokenizer.control_id(name): 8.0}


def test_behind_the_opener_a_call_is_valid_and_before_it_the_text_is_free(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4())
    called = 0
    for seed in range(12):
        done = ask(grammar, temperature=1.0, seed=seed, max_tokens=60, logit_bias=towards(model, "<|tool_call>"))
        found = events(model, done.ids)
        for event in found:
            if isinstance(event, CallEnd):
                check(event.arguments, RING.parameters)
                called += 1
    assert called > 5
    prompt, sampled = text(random.Random(8), 12), {"temperature": 1.0, "seed": 1, "max_tokens": 60}
    never = {model.tokenizer.control_id("<|tool_call>"): -100}
    free = ask(grammar, prompt=prompt, logit_bias=never, **sampled)
    assert free.ids == ask(None, prompt=prompt, logit_bias=never, **sampled).ids


def test_an_opener_that_there_is_no_room_behind_does_not_come(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4())
    bias = {model.tokenizer.control_id("<|tool_call>"): 100.0}
    done = ask(grammar, max_tokens=5, logit_bias=bias)
    assert (done.ids, done.text, done.finish_reason) == ((), "", FinishReason.LENGTH)
    done = ask(grammar, max_tokens=30, logit_bias=bias)
    assert len([event for event in events(model, done.ids) if isinstance(event, CallEnd)]) == 1


@pytest.mark.parametrize("choice", ["any", "required", "RING"])
def test_calls_that_have_to_come_do(ask, model, choice):
    grammar = grammar_for([RING, Tool("OTHER")], choice, False, Gemma4())
    for seed in range(5):
        done = ask(grammar, temperature=2.0, seed=seed, max_tokens=40)
        begin, end = events(model, done.ids)
        assert begin.name in ({"RING"} if choice == "RING" else {"RING", "OTHER"})
        if begin.name == "RING":
            check(end.arguments, RING.parameters)


def test_one_call_where_there_may_be_one_and_several_where_there_may_be_several(ask, model):
    several = 0
    for seed in range(6):
        for parallel in (False, True):
            grammar = grammar_for([Tool("R")], "any", parallel, Gemma4())
            done = ask(grammar, temperature=1.0, seed=seed, max_tokens=60, logit_bias=towards(model, "<|tool_call>"))
            count = len(events(model, done.ids)) // 2
            assert count == 1 or parallel
            several += count > 1
    assert several


def test_without_calls_the_opener_never_comes(ask, model):
    grammar = grammar_for([RING], "none", True, Gemma4())
    opener = model.tokenizer.control_id("<|tool_call>")
    for seed in range(3):
        done = ask(grammar, temperature=3.0, seed=seed, max_tokens=40, logit_bias={opener: 50.0}, ignore_eos=True)
        assert opener not in done.ids
        assert done.generated_tokens == 40


def test_stop_strings_hold_before_a_call(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4())
    free = ask(grammar, prompt=[5] * 20, temperature=1.0, seed=3, max_tokens=30, ignore_eos=True)
    stop = free.text[4:6]
    done = ask(grammar, prompt=[5] * 20, temperature=1.0, seed=3, max_tokens=30, ignore_eos=True, stop=[stop])
    assert (done.text, done.stop) == (free.text[: free.text.index(stop)], stop)


# What cannot be


def test_a_grammar_of_another_format_is_refused(ask):
    from langchain_gemma_jax.dialects.function_gemma import FunctionGemma

    assert ask(grammar_for([RING], "any", True, FunctionGemma()), max_tokens=20).text
    with pytest.raises(UnsupportedModelError, match="<missing>"):
        ask.engine._models[ask.served].constraints.lexicon.control_ids(["<missing>"])


def test_what_is_no_grammar_is_refused():
    with pytest.raises(InputError, match="json_grammar"):
        Sampling(grammar={"type": "object"})


def test_the_engine_lives_after_hostile_grammars(ask):
    for schema in ({"pattern": "((a{900}){900})"}, {"$ref": "#"}, {"type": "string", "minLength": 10**9}):
        with pytest.raises(SchemaError):
            ask(json_grammar(schema))
    hard = {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": f"^(a|b|ab)*{i}"} for i in range(40)]}}
    check(json.loads(ask(json_grammar(hard), max_tokens=60, temperature=2.0, seed=1).text), hard)
    check(json.loads(ask(json_grammar(PERSON), max_tokens=60).text), PERSON)


def test_a_matcher_that_gives_up_ends_the_text_and_not_the_engine(ask, monkeypatch, caplog):
    from langchain_gemma_jax.engine.requests.request_constraint import Constraint

    ask(json_grammar(PERSON), max_tokens=5)
    real = Constraint._mask

    def none(self):
        self._matcher.consume_token(0)  # which is an error that it does not leave
        return real(self)

    monkeypatch.setattr(Constraint, "_mask", none)
    done = ask(json_grammar(PERSON), max_tokens=60, temperature=3.0, seed=2)
    check(json.loads(done.text), PERSON)
    assert done.finish_reason is FinishReason.LENGTH
    assert "given up" in caplog.text


# Many


def many(engine, served, seeds, at_once=8):
    rows = []
    for seed in seeds:
        rng = random.Random(seed)
        schema = Schemas(rng).whole()
        try:
            grammar = json_grammar(schema)
        except SchemaError:
            continue
        sampling = Sampling(
            grammar=grammar,
            max_tokens=rng.randint(1, 200),
            temperature=rng.choice([0.0, 0.7, 1.5]),
            top_k=rng.choice([0, 64]),
            seed=seed,
        )
        rows.append((schema, engine, served, text(rng, rng.randint(1, 20)), sampling))
    for first in range(0, len(rows), at_once):
        group = rows[first : first + at_once]
        going = []
        for schema, _, _, prompt, sampling in group:
            try:
                going.append((schema, engine.submit(served, prompt, sampling, timeout=60)))
            except ContextLengthError:
                continue  # the shortest text is longer than this model's context
        for schema, generation in going:
            check(json.loads(generation.result().text), schema)


def test_thirty_schemas(engine_of, model):
    engine = engine_of(ladders=LADDERS)
    many(engine, engine.serve(model), range(30))
    report = engine.report()
    assert (report.failed, report.guard_trips) == (0, {})


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_thousand_schemas(engine_of, model):
    engine = engine_of(ladders=LADDERS)
    many(engine, engine.serve(model), range(100, 2100))
    assert engine.report().failed == 0
