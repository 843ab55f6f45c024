"""Whatever a random model says under a grammar: if it is complete it is valid, and else the begin of what would be."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from langchain_gemma_jax.chat.answering.event_reader import EventReader
from langchain_gemma_jax.dialects import CallBegin, CallEnd, Invalid, Tool, grammar_for, json_grammar
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.request import FinishReason
from langchain_gemma_jax.errors import InputError, SchemaError, UnsupportedModelError
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
# The random model leans toward quotes and brackets: with 6 its texts end within some ten tokens.
ENDS = {"logit_bias": {4 + byte: 6.0 for byte in b'"}]'}}


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


def agree(whole, cut, most):
    """Check that an answer of ``most`` tokens begins the whole one, and is complete if nothing else could follow."""
    assert whole.complete
    assert (cut.finish_reason is FinishReason.STOP) == cut.complete
    if cut.complete:
        assert (cut.ids, cut.text, cut.stop) == (whole.ids, whole.text, whole.stop)
    else:
        assert most < len(whole.ids)
        assert cut.ids == whole.ids[:most]
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
            json.loads(cut.text)


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, HOT, HOT | {"top_k": 40, "top_p": 0.9}, {"repetition_penalty": 1.5}], ids=str)
def test_a_random_model_gives_what_it_is_held_to_or_the_begin_of_it(ask, options):
    rng = random.Random(12)
    grammar, complete = json_grammar(PERSON), []
    for seed in range(3):
        how = dict(prompt=text(rng, 20), seed=seed, **options, **ENDS)
        whole = ask(grammar, **how)
        check(json.loads(whole.text), PERSON)
        last = len(whole.ids)
        for most in (1, 3, 10, 17, last - 2, last - 1, last, last + 1):
            agree(whole, cut := ask(grammar, max_tokens=most, **how), most)
            complete.append(cut.complete)
    assert set(complete) == {False, True}


def test_of_too_few_tokens_no_value_is_made(ask):
    done = ask(json_grammar(PERSON), max_tokens=3)
    assert (done.text, done.finish_reason, done.complete) == ('{"N', FinishReason.LENGTH, False)
    assert done.forced_tokens == done.generated_tokens == 3


def test_brackets_that_have_to_come_are_appended_behind_the_last_token(ask):
    schema = {"type": "object", "properties": {"A": {"type": "array", "items": {"enum": [True, False]}}}}
    schema |= {"required": ["A"], "additionalProperties": False}
    schema["properties"]["A"] |= {"minItems": 1, "maxItems": 1}
    grammar, room = json_grammar(schema), len('{"A": [')
    done = ask(grammar, max_tokens=room + 1)
    assert json.loads(done.text) in ({"A": [True]}, {"A": [False]})
    assert (done.complete, done.finish_reason, done.generated_tokens) == (True, FinishReason.STOP, len(done.text))
    assert len(done.ids) > room + 1
    assert done.forced_tokens == done.generated_tokens - 1
    again = ask(grammar, max_tokens=room + 1, logprobs=True)
    assert (again.text, [one.id for one in again.logprobs]) == (done.text, list(done.ids))
    assert not ask(grammar, max_tokens=room).complete


def test_a_number_that_could_have_more_digits_is_not_complete(ask):
    """It may end there, and the model has not ended it."""
    done = ask(json_grammar({"type": "integer", "minimum": 1}), max_tokens=2, ignore_eos=True)
    assert int(done.text) > 9
    assert (done.complete, done.finish_reason) == (False, FinishReason.LENGTH)
    done = ask(json_grammar({"enum": [1, 12]}), max_tokens=1, logit_bias={1: 90.0})
    assert (done.text, done.complete) == ("1", False)
    done = ask(json_grammar({"enum": [1, 12]}), max_tokens=2, logit_bias={1: 90.0})
    assert (done.text, done.complete, done.stop) == ("1", True, 1)


def test_half_a_character_is_closed_too(ask):
    """The appended text comes before the held-back text is given up."""
    for most in range(1, 6):
        pieces = list(
            ask.engine.submit(ask.served, [5] * 9, Sampling(grammar=json_grammar({"const": "€"}), max_tokens=most))
        )
        assert "".join(piece.text for piece in pieces) == '"€"'


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
    ask.engine._owner.models.known[ask.served].grammars.trust._wary_for = wary
    done = ask(json_grammar({"type": "integer", "minimum": 10}), logit_bias={1: 90.0}, max_tokens=12)
    assert (done.stop, done.finish_reason, len(done.text)) == (1, FinishReason.STOP, 2)


def test_the_context_is_a_limit_too(ask):
    grammar = json_grammar(PERSON)
    for room in (1, 9, 30):
        done = ask(grammar, prompt=[5] * (CONTEXT - room), temperature=2.0, seed=1)
        assert (len(done.ids), done.complete, done.finish_reason) == (room, False, FinishReason.LENGTH)
    done = ask(json_grammar({"const": "ABC"}), prompt=[5] * (CONTEXT - 1))
    assert (done.text, done.complete) == ('"ABC"', True)  # nothing of it has to be read


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [{}, {"loop_steps": 24, "ladders": BATCH}, {"drafts": True}, {"ladders": ONE_SIZE}], ids=str
)
@pytest.mark.parametrize(
    "options",
    [{}, HOT | {"seed": 5, "top_k": 30, "min_p": 0.01}, pytest.param(HOT | {"seed": 4}, marks=pytest.mark.slow)],
    ids=str,
)
def test_masks_loops_drafts_and_neighbors_change_nothing(engine_of, model, settings, options):
    """With trust a token is drawn freely and looked at, without it under a mask: the same token."""
    prompt = (text(random.Random(2), 9) * 6)[:50]
    found = []
    for number, wary in enumerate((0, 10**6, 3)):
        engine = engine_of(**settings)
        served = engine.serve(model)
        trust = engine._owner.models.known[served].grammars.trust
        trust._wary_for = wary
        sampling = Sampling(grammar=json_grammar(PERSON), max_tokens=50, **options, **ENDS)
        neighbors = [engine.submit(served, text(random.Random(n), 30), sampling) for n in range(2 * number)]
        found.append(engine.submit(served, prompt, sampling).result())
        for neighbor in neighbors:
            check(json.loads(neighbor.result().text), PERSON)
    check(json.loads(found[0].text), PERSON)
    assert len({one.ids for one in found}) == 1
    assert engine.report().guard_trips == {}


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, HOT | {"seed": 6}], ids=str)
def test_a_mask_holds_for_one_token(engine_of, model, options):
    """The mask of one token may forbid what the mask of the next allows: some letters of both kinds are the same."""
    schema = {"type": "string", "pattern": "^([A-J][F-N0-9])+$"}
    found = set()
    for settings in ({}, {"loop_steps": 24}):
        engine = engine_of(**settings)
        served = engine.serve(model)
        engine._owner.models.known[served].grammars.trust._wary_for = 10**6
        sampling = Sampling(grammar=json_grammar(schema), max_tokens=60, **options)
        done = engine.submit(served, text(random.Random(9), 20), sampling).result()
        assert re.fullmatch('"([A-J][F-N0-9])+[A-J]?', done.text) if not done.complete else json.loads(done.text)
        found.add(done.ids)
    assert len(found) == 1


def test_greedy_tokens_are_the_best_of_those_that_are_legal(ask, cold):
    prompt = text(random.Random(3), 20)
    done = ask(json_grammar(NUMBERS), prompt=prompt, max_tokens=25, logprobs=True)
    (scores,) = cold.scores([[*prompt, *done.ids]])
    rule = ask.engine._owner.models.known[ask.served].grammars.of(
        json_grammar(NUMBERS), frozenset({1, 288}), forces=False
    )
    for place, token in enumerate(done.ids):
        rule.illegal = True
        rule.prepare()
        rule.illegal = False
        legal = np.flatnonzero(np.unpackbits(rule.allowed.view(np.uint8), bitorder="little"))
        assert rule.take(token)
        row = scores[len(prompt) + place - 1]
        assert row[token] >= row[legal].max() - 1e-3


def test_the_kv_behind_forced_and_refused_tokens_is_sound(ask, cold):
    """A second turn takes over what a cold run would have read."""
    prompt = text(random.Random(4), 30)
    first = ask(json_grammar(PERSON), prompt=prompt, max_tokens=40, temperature=1.5, seed=3)
    behind = [*prompt, *first.ids, *text(random.Random(5), 10)]
    second = ask(None, prompt=behind, max_tokens=12, ignore_eos=True)
    assert second.reused_tokens > len(prompt)
    cold.expect(behind, second)
    cold.check()


def test_what_a_grammar_appends_is_no_turn_to_go_back_to(ask):
    """Each would keep pages of the local layers. One is kept where the prompt ended, with what was appended at once."""
    properties = {name * 6: {"type": "boolean"} for name in "ABCDE"}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    prompt = text(random.Random(7), 40)  # several windows
    ask(json_grammar(schema), prompt=prompt)
    (resident,) = ask.engine._owner.models.runners[ask.served].kv_store.index.residents
    assert [turn for turn in resident.turns if turn > len(prompt)] == [len(prompt) + len('{"AAAAAA":')]


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
    done = ask(json_grammar(PERSON), max_tokens=90, temperature=1.5, seed=2, stop=['"', "A", "0", "}"], **ENDS)
    check(json.loads(done.text), PERSON)


def test_a_stop_id_that_is_text_does_not_either(ask):
    brace = ask.served.model.tokenizer.encode_text("{")[0]
    done = ask(json_grammar(PERSON), max_tokens=90, temperature=1.5, seed=2, stop_ids=[brace], **ENDS)
    check(json.loads(done.text), PERSON)


# Turns


def events(model, done):
    """Begins and ends of calls. A call that broke off is the last, and there is none if the text is complete."""
    reader = EventReader(Gemma4Dialect().parser(), model.tokenizer.control_name)
    found = [*reader.take(done.ids, done.decoded, done.text), *reader.finish(done.text)]
    broken = [event for event in found if isinstance(event, Invalid)]
    assert broken == [] if done.complete else broken in ([], found[-1:])
    return [event for event in found if isinstance(event, CallBegin | CallEnd | Invalid)]


def toward(model, *names):
    """A bias by which a random model says these control tokens sooner or later."""
    return {model.tokenizer.control_id(name): 8.0 for name in names} | ENDS["logit_bias"]


def test_behind_the_opener_a_call_is_valid_and_before_it_the_text_is_free(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4Dialect())
    called = 0
    bias = toward(model, "<|tool_call>", '<|"|>')
    for seed in range(12):
        done = ask(grammar, temperature=1.0, seed=seed, max_tokens=60, logit_bias=bias)
        for event in events(model, done):
            if isinstance(event, CallEnd):
                check(event.arguments, RING.parameters)
                called += 1
    assert called > 5
    prompt, sampled = text(random.Random(8), 12), {"temperature": 1.0, "seed": 1, "max_tokens": 60}
    never = {model.tokenizer.control_id("<|tool_call>"): -100}
    free = ask(grammar, prompt=prompt, logit_bias=never, **sampled)
    assert free.ids == ask(None, prompt=prompt, logit_bias=never, **sampled).ids


def test_a_call_may_open_and_break_off(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4Dialect())
    bias = {model.tokenizer.control_id("<|tool_call>"): 100.0}
    done = ask(grammar, max_tokens=5, logit_bias=bias)
    assert (done.text, done.complete, done.finish_reason) == ("call", False, FinishReason.LENGTH)
    assert [type(event) for event in events(model, done)] == [Invalid]
    done = ask(grammar, max_tokens=30, logit_bias=toward(model, "<|tool_call>") | bias)
    assert len([event for event in events(model, done) if isinstance(event, CallEnd)]) >= 1


def test_a_turn_that_could_have_more_calls_is_not_complete_and_its_calls_are(ask, model):
    grammar = grammar_for([Tool("R")], "any", True, Gemma4Dialect())
    length = len("<call:R{}>")  # in tokens
    done = ask(grammar, max_tokens=1)
    assert len(events(model, done)) == 2  # of one call there was no alternative to anything
    assert (done.complete, done.finish_reason, len(done.ids)) == (False, FinishReason.LENGTH, length)
    done = ask(grammar_for([Tool("R")], "any", False, Gemma4Dialect()), max_tokens=1)
    assert (done.complete, done.finish_reason, len(done.ids)) == (True, FinishReason.STOP, length)


@pytest.mark.parametrize("choice", ["any", "required", "RING"])
def test_calls_that_have_to_come_do(ask, model, choice):
    grammar = grammar_for([RING, Tool("OTHER")], choice, False, Gemma4Dialect())
    for seed in range(5):
        done = ask(grammar, temperature=2.0, seed=seed, max_tokens=80, logit_bias=toward(model, '<|"|>'))
        begin, end = events(model, done)
        assert begin.name in ({"RING"} if choice == "RING" else {"RING", "OTHER"})
        if begin.name == "RING":
            check(end.arguments, RING.parameters)


def test_one_call_where_there_may_be_one_and_several_where_there_may_be_several(ask, model):
    several = 0
    for seed in range(6):
        for parallel in (False, True):
            grammar = grammar_for([Tool("R")], "any", parallel, Gemma4Dialect())
            done = ask(grammar, temperature=1.0, seed=seed, max_tokens=60, logit_bias=toward(model, "<|tool_call>"))
            count = len(events(model, done)) // 2
            assert count == 1 or parallel
            several += count > 1
    assert several


def test_without_calls_the_opener_never_comes(ask, model):
    grammar = grammar_for([RING], "none", True, Gemma4Dialect())
    opener = model.tokenizer.control_id("<|tool_call>")
    for seed in range(3):
        done = ask(grammar, temperature=3.0, seed=seed, max_tokens=40, logit_bias={opener: 50.0}, ignore_eos=True)
        assert opener not in done.ids
        assert done.generated_tokens == 40


def test_stop_strings_hold_before_a_call(ask, model):
    grammar = grammar_for([RING], "auto", True, Gemma4Dialect())
    free = ask(grammar, prompt=[5] * 20, temperature=1.0, seed=3, max_tokens=30, ignore_eos=True)
    stop = free.text[4:6]
    done = ask(grammar, prompt=[5] * 20, temperature=1.0, seed=3, max_tokens=30, ignore_eos=True, stop=[stop])
    assert (done.text, done.stop) == (free.text[: free.text.index(stop)], stop)


# What cannot be


def test_a_grammar_of_another_format_is_refused(ask):
    from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect

    assert ask(grammar_for([RING], "any", True, FunctionGemmaDialect()), max_tokens=20).text
    with pytest.raises(UnsupportedModelError, match="<missing>"):
        ask.engine._owner.models.known[ask.served].grammars.lexicon.control_ids(["<missing>"])


def test_what_is_no_grammar_is_refused():
    with pytest.raises(InputError, match="json_grammar"):
        Sampling(grammar={"type": "object"})


def test_the_engine_lives_after_hostile_grammars(ask):
    for schema in ({"pattern": "((a{900}){900})"}, {"$ref": "#"}, {"type": "string", "minLength": 10**9}):
        with pytest.raises(SchemaError):
            ask(json_grammar(schema))
    hard = {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": f"^(a|b|ab)*{i}"} for i in range(40)]}}
    for schema in (hard, PERSON):
        check(json.loads(ask(json_grammar(schema), max_tokens=90, temperature=2.0, seed=1, **ENDS).text), schema)


def test_a_matcher_that_gives_up_ends_the_text_and_not_the_engine(ask, monkeypatch, caplog):
    from langchain_gemma_jax.engine.requests.request_constraint import RequestConstraint

    ask(json_grammar(PERSON), max_tokens=5)
    real = RequestConstraint._mask

    def none(self):
        self._matcher.consume_token(0)  # which is an error that it does not leave
        return real(self)

    monkeypatch.setattr(RequestConstraint, "_mask", none)
    done = ask(json_grammar(PERSON), max_tokens=60, temperature=3.0, seed=2)
    assert (done.complete, done.finish_reason) == (False, FinishReason.LENGTH)
    assert done.generated_tokens < 60
    assert "given up" in caplog.text


# Many


def many(engine, served, seeds, at_once=8):
    rows, complete = [], 0
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
            **ENDS,
        )
        rows.append((schema, engine, served, text(rng, rng.randint(1, 20)), sampling))
    for first in range(0, len(rows), at_once):
        group = rows[first : first + at_once]
        going = []
        for schema, _, _, prompt, sampling in group:
            going.append((schema, engine.submit(served, prompt, sampling, timeout=60)))
        for schema, generation in going:
            done = generation.result()
            if done.complete:
                check(json.loads(done.text), schema)
                complete += 1
    assert complete > len(rows) / 3


@pytest.mark.long
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
