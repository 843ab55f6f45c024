"""A model's side of grammars: its vocabulary, what was compiled, and whether it keeps to grammars by itself."""

from __future__ import annotations

import gc
import weakref

import pytest
from llguidance import LLParserLimits

from langchain_gemma_jax.dialects import Tool, grammar_for, json_grammar
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests import model_grammars as module
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.engine.requests.request_constraint import Trust
from langchain_gemma_jax.errors import InputError, SchemaError
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import allowed

NUMBER = json_grammar({"type": "integer", "minimum": 100})
NO_STOPS: frozenset[int] = frozenset()


@pytest.fixture
def constraints():
    return ModelGrammars(tokenizer(), tokenizer().vocab_size + 50)


def test_a_model_is_trusted_until_it_is_wrong_and_less_each_time():
    trust = Trust()
    found = []
    for _ in range(5):
        assert not trust.wary
        trust.wrong()
        masked = 0
        while trust.wary:
            trust.right(1)
            masked += 1
        found.append(masked)
    assert found == [8, 32, 128, 512, 512]
    trust.right(Trust.REGAINED)
    trust.wrong()
    trust.right(7)
    assert trust.wary
    trust.right(1)
    assert not trust.wary


def test_a_mask_covers_the_embedding_and_allows_tokens_only(constraints):
    rule = constraints.of(NUMBER, NO_STOPS, forces=False)
    rule.illegal = True
    rule.prepare()
    assert len(rule.allowed) == -(-(tokenizer().vocab_size + 50) // 32)
    digits = {token for word in range(len(rule.allowed)) for bit in range(32)
              if rule.allowed[word] >> bit & 1 for token in [32 * word + bit]}  # fmt: skip
    assert {tokenizer().token_bytes(token) for token in digits} == {bytes([code]) for code in b"123456789"}


def test_of_a_draft_what_is_legal_is_checked(constraints):
    rule = constraints.of(NUMBER, NO_STOPS, forces=False)
    draft = tuple(tokenizer().encode_text("12x3"))
    assert rule.legal(draft) == draft[:2]
    rule.illegal = True
    rule.prepare()
    assert rule.legal(draft) == ()  # it is to be drawn with a mask


def test_behind_an_illegal_token_comes_another_try_and_then_the_end(constraints):
    rule = constraints.of(NUMBER, NO_STOPS, forces=False)
    one, letter = (tokenizer().encode_text(text)[0] for text in "1x")
    assert rule.take(one)
    assert not rule.take(letter)
    assert (rule.illegal, rule.cut_off) == (True, False)
    assert rule.take(one)  # the matcher is where it was
    assert rule.take(one)
    assert rule.complete
    assert not rule.take(letter)
    assert not rule.take(letter)  # again, behind a mask: rather end than go round in circles
    assert rule.cut_off


def test_the_end_that_llguidance_means_is_no_token_of_a_text(constraints):
    end = constraints.lexicon.end
    rule = constraints.of(NUMBER, NO_STOPS, forces=False)
    assert all(map(rule.take, tokenizer().encode_text("123")))
    assert not rule.take(end)
    assert constraints.of(NUMBER, frozenset({end}), forces=False).take(end) is False  # it is not whole yet
    rule = begun(constraints, {"const": 123}, "123")
    assert rule.take(end)
    assert rule.finished


def test_requests_do_not_share_a_place(constraints):
    first, second = (constraints.of(NUMBER, NO_STOPS, forces=False) for _ in range(2))
    one, minus = tokenizer().encode_text("1")[0], tokenizer().encode_text("-")[0]
    assert first.take(one)
    assert not second.take(minus)
    assert first.take(one)
    assert second.take(one)
    assert [rule._matcher.is_accepting() for rule in (first, second)] == [False, False]
    assert first.take(one)
    assert [rule._matcher.is_accepting() for rule in (first, second)] == [True, False]


def test_nothing_of_a_grammar_is_kept(constraints):
    """So no request is told by its time what another one, or another tenant, was held to."""
    known = gc.collect(), constraints.of(NUMBER, NO_STOPS, forces=False)
    matcher = weakref.ref(known[1])
    kept = {name: value for name, value in vars(constraints).items() if name != "trust"}
    assert constraints.of(NUMBER, NO_STOPS, forces=False)._matcher is not known[1]._matcher
    del known
    gc.collect()
    assert matcher() is None
    assert {name: value for name, value in vars(constraints).items() if name != "trust"} == kept
    assert json_grammar({"const": 1}) is not json_grammar({"const": 1})


def begun(constraints, schema, text):
    """A place behind so much of a text."""
    rule = constraints.of(json_grammar(schema), frozenset(tokenizer().eos_ids), forces=False)
    assert all(map(rule.take, tokenizer().encode_text(text)))
    return rule


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ('{"A": [true', "]}"),
        ('{"A": [true], "B"', ""),  # which value is the model's to say
        ('{"A": [true], "B": "', ""),
        ('{"A": [true], "B": "x', ""),
        ('{"A": [true], "B": "x"', "}"),
        ('{"A": [true], "C"', ': {"D": "\u20ac"}}'),
        ('{"A": [true], "C": {"D": "', '\u20ac"}}'),
        ('{"A": [true], "E": 1', ""),  # perhaps more digits
        ('{"A": [true]', ""),  # perhaps more members
        ('{"A": [true], "C": {"D": "\u20ac"}}', ""),
    ],
)
def test_the_end_that_is_appended_is_one_without_any_choice(constraints, text, closing):
    one = {"type": "object", "properties": {"D": {"const": "\u20ac"}}, "required": ["D"]}
    members = {"B": {"enum": ["x", "xy"]}, "C": one, "E": {"enum": [1, 12]}}
    closed = {"type": "object", "additionalProperties": False}
    several = [{"properties": {"A": {"const": [True]}, name: rest}, "required": ["A", name]} | closed
               for name, rest in members.items()]  # fmt: skip
    if closing == "]}":
        several = [{"properties": {"A": {"const": [True]}}, "required": ["A"]} | closed]
    rule = begun(constraints, {"anyOf": several}, text)
    before = allowed(rule)
    assert tokenizer().decode(rule.closing()) == closing
    assert allowed(rule) == before
    assert all(map(rule.take, rule.closing()))
    assert rule.finished == (text.endswith("}") or bool(closing))


def test_what_could_become_another_value_is_not_closed(constraints):
    rule = begun(constraints, {"enum": [1, 12]}, "")
    assert (rule.complete, rule.closing()) == (False, ())  # 1 has no alternative, and need not be all
    assert rule.take(tokenizer().encode_text("1")[0])
    assert (rule.complete, rule.finished, rule.closing()) == (True, False, ())


@pytest.mark.parametrize("parallel", [True, False])
def test_a_call_is_closed_though_another_one_could_follow(constraints, parallel):
    tool = Tool("x", "", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    known = tokenizer()
    rule = constraints.of(grammar_for([tool], "any", parallel, Gemma4Dialect()), NO_STOPS, forces=False)
    assert all(map(rule.take, rule.forced() or rule._matcher.compute_ff_tokens()))
    assert rule.closing() == ()
    quote = known.control_id('<|"|>')
    assert all(map(rule.take, [*known.encode_text("me"), quote]))
    assert rule.closing() == (*known.encode_text("}"), known.control_id("<tool_call|>"))


def test_behind_an_error_nothing_is_appended(constraints):
    rule = begun(constraints, {"const": True}, "t")
    rule._matcher.consume_token(0)
    assert rule.closing() == ()


def test_a_request_is_held_to_what_it_asks_for(constraints):
    assert constraints.begin(Sampling(), NO_STOPS) == (None, ())
    assert constraints.begin(Sampling(grammar=NUMBER), NO_STOPS)[0].active
    none = grammar_for([Tool("x")], "none", True, Gemma4Dialect())
    opener = tokenizer().control_id("<|tool_call>")
    assert constraints.begin(Sampling(grammar=none), NO_STOPS) == (None, (opener,))
    full = {token + opener + 1: 1.0 for token in range(512)}
    with pytest.raises(InputError, match="found 513"):
        constraints.begin(Sampling(grammar=none, logit_bias=full), NO_STOPS)


def test_what_llguidance_does_not_take_is_a_schema_error(constraints, monkeypatch):
    monkeypatch.setattr(module, "lark", lambda *_: "start: nowhere\n")
    with pytest.raises(SchemaError, match="too large or too ambiguous"):
        constraints.of(NUMBER, NO_STOPS, forces=True)


def test_what_takes_long_can_be_made_before(constraints, monkeypatch):
    constraints.prepare()
    made = constraints.lexicon.matching()
    constraints.prepare(NUMBER)
    assert constraints.lexicon.matching() is made
    monkeypatch.setattr(module, "lark", lambda *_: "start: nowhere\n")
    with pytest.raises(SchemaError):
        constraints.prepare(NUMBER)


def test_a_grammar_that_fails_is_given_up_and_the_log_tells_neither_text_nor_schema(constraints, monkeypatch, caplog):
    monkeypatch.setattr(module, "limits", lambda: LLParserLimits(max_items_in_row=30))
    members = {"canary": {"const": "bird"}} | {f"canary{number}": {} for number in range(100)}
    rule = constraints.of(json_grammar({"properties": members, "required": ["canary"]}), NO_STOPS, forces=False)
    taken = 0
    for token in tokenizer().encode_text('{"canary": "bird", "canary3": 1'):
        taken += rule.take(token)
        rule.illegal = not rule.cut_off  # so that there is a mask
        rule.prepare()
    assert (rule.cut_off, rule.finished, rule.closing()) == (True, False, ())
    assert caplog.messages == [f"A grammar is given up after {taken} tokens: InternalError"]
    assert not any(canary in caplog.text for canary in ("canary", "bird"))
