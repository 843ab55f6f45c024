"""Conversations that come back are read as they were generated."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import tracemalloc
import weakref

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

from langchain_gemma_jax.chat.history import bounded_memory
from langchain_gemma_jax.chat.history.bounded_memory import BoundedMemory
from langchain_gemma_jax.chat.history.generated_ids import (
    MOST_BYTES,
    ConversationMemory,
    GeneratedIds,
    conversation_memory,
)
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.dialects import Message, ToolCall
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from tests.chat.scripted import ScriptedEngine
from tests.dialects.vocabulary import tokenizer

ENCODED = tokenizer()
THOUGHT = "<|channel>thought\nHmm.\n<channel|>"
CALL = '<|tool_call>call:ring{b:2,a:<|"|>x<|"|>}<tool_call|>'  # keys in another order than they are rendered


def ids(text: str) -> tuple[int, ...]:
    return tuple(ENCODED.encode_scaffold(text))


def keep(answers: GeneratedIds, said: list[Message], generated) -> None:
    answers.keep("gemma", History("", said[:-1]).followed_by(said[-1]), generated)


def holds(request: dict, answer: tuple[int, ...]) -> bool:
    prompt = request["prompt"]
    return any(prompt[start : start + len(answer)] == answer for start in range(len(prompt)))


FORMS = {
    "as it is": lambda answer: answer,
    "without an id": lambda answer: answer.model_copy(update={"id": None}),
    "without anything of ours": lambda answer: AIMessage(answer.content, tool_calls=answer.tool_calls),
    "through JSON": lambda answer: type(answer).model_validate_json(answer.model_dump_json()),
    "through OpenAI's form": lambda answer: convert_to_messages(convert_to_openai_messages([answer]))[0],
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_an_answer_is_known_again_in_every_form(form, version, streamed, scripted):
    model, engine = scripted(f"At once.  {CALL}<|tool_response>", "Done.<turn|>", output_version=version)
    first, *rest = model.stream("Ring") if streamed else [model.invoke("Ring")]
    answer = form(first + rest if rest else first)
    model.invoke([HumanMessage("Ring"), answer, ToolMessage("done", tool_call_id=answer.tool_calls[0]["id"])])
    assert holds(engine.submitted[1], ids(f"At once.  {CALL}"))


CHANGES = {
    "words": lambda answer: answer.model_copy(update={"content": "Not at once."}),
    "arguments": lambda answer: answer.model_copy(update={"tool_calls": [answer.tool_calls[0] | {"args": {"a": "y"}}]}),
    "a call less": lambda answer: answer.model_copy(update={"tool_calls": []}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_an_answer_that_was_changed_is_read_as_it_is_now(change, scripted):
    # Its id is the same. What it says counts.
    model, engine = scripted(f"At once. {CALL}<|tool_response>", "Done.<turn|>")
    answer = change(model.invoke("Ring"))
    results = [ToolMessage("done", tool_call_id=call["id"]) for call in answer.tool_calls]
    model.invoke([HumanMessage("Ring"), answer, *results, HumanMessage("Well?")])
    assert not holds(engine.submitted[1], ids(f"At once. {CALL}"))
    expected = "Not at once." if answer.text.startswith("Not") else "At once."
    assert holds(engine.submitted[1], ids(expected))


def test_thoughts_that_were_taken_out_do_not_come_back(scripted):
    model, engine = scripted(f"{THOUGHT}{CALL}<|tool_response>", "Done.<turn|>", "Done.<turn|>", thinking=True)
    answer = model.invoke("Ring")
    result = ToolMessage("done", tool_call_id=answer.tool_calls[0]["id"])
    model.invoke([HumanMessage("Ring"), answer, result])
    assert holds(engine.submitted[1], ids(f"{THOUGHT}{CALL}"))
    model.invoke([HumanMessage("Ring"), answer.model_copy(update={"additional_kwargs": {}}), result])
    assert not holds(engine.submitted[2], ids("Hmm."))


def test_scopes_share_no_answers(scripted):
    model, engine = scripted(f"Ring {CALL}<|tool_response>", "Done.<turn|>", scope="a")
    answer = model.invoke("Ring")
    result = ToolMessage("done", tool_call_id=answer.tool_calls[0]["id"])
    model.invoke([HumanMessage("Ring"), answer, result], scope="b")
    assert not holds(engine.submitted[1], ids(CALL))


def test_what_a_stop_string_cut_off_stays_cut_off(scripted):
    model, engine = scripted("Yes. STOP", "Done.<turn|>", stop=["STOP"])
    answer = model.invoke("Well?")
    model.invoke([HumanMessage("Well?"), answer, HumanMessage("And?")])
    assert not holds(engine.submitted[1], ids("STOP"))
    assert holds(engine.submitted[1], ids("Yes. "))  # the space, which a rendered message does not have


def test_what_was_no_call_is_read_as_words(scripted):
    model, engine = scripted("<|tool_call>call:ring{", "Done.<turn|>")
    model.invoke([HumanMessage("Ring"), model.invoke("Ring"), HumanMessage("Well?")])
    assert not holds(engine.submitted[1], (ENCODED.control_id("<|tool_call>"),))


def test_a_call_that_was_none_and_was_taken_out_does_not_come_back(scripted):
    model, engine = scripted("Yes. <|tool_call>call:ring{", "Done.<turn|>")
    answer = model.invoke("Ring").model_copy(update={"invalid_tool_calls": []})
    model.invoke([HumanMessage("Ring"), answer, HumanMessage("Well?")])
    assert not holds(engine.submitted[1], ids("<|tool_call>"))


def test_the_store_is_bounded_and_forgets_the_oldest():
    said = [[Message.assistant(text)] for text in "abc"]
    one = bounded_memory.ENTRY_BYTES + sys.getsizeof(bytes(32)) + sys.getsizeof(bytes(4 * 5))
    answers = GeneratedIds(2 * one)

    def known() -> list[bool]:
        return [bool(answers.of("gemma", History("", conversation))) for conversation in said]

    for conversation in said[:2]:
        keep(answers, conversation, [1, 2, 3, 4, 5])
    answers.of("gemma", History("", said[0]))  # used
    keep(answers, said[2], [6])
    assert known() == [True, False, True]
    keep(answers, said[1], range(2 * one))  # more than there is room for
    keep(answers, said[1], [])
    assert known() == [True, False, True]
    for _ in range(5):
        keep(answers, said[0], [7, 8])  # in place of what was there
    assert list(answers.of("gemma", History("", said[0]))[0]) == [7, 8]
    assert known() == [True, False, True]


@pytest.mark.long
@pytest.mark.parametrize("tokens", [1, 30, 1000])
def test_the_bytes_that_are_promised_are_those_that_the_process_has(tokens):
    kept, value = BoundedMemory[bytes](MOST_BYTES), bytes(4 * tokens)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(30_000):
            kept.keep(hashlib.sha256(number.to_bytes(4)).digest(), value[:-1] + bytes([number % 256]))
        held, most = (taken - before for taken in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert len(kept) > 500
    assert held <= most <= MOST_BYTES


def test_who_comes_in_the_midst_of_it_does_without():
    """A signal handler: on the same thread, while something is half done."""
    kept = BoundedMemory[str](10_000)
    kept.keep(b"a", "x")
    with kept._lock:
        assert kept.get(b"a") is None
        kept.keep(b"b", "y")
    assert (kept.get(b"a"), kept.get(b"b")) == ("x", None)


def test_what_is_remembered_ends_with_the_engine(chat_of, running):
    model = chat_of("gemma4", scope="remembered")
    told = [HumanMessage("HELLO"), model.invoke("HELLO"), HumanMessage("MORE")]
    first = conversation_memory()
    assert conversation_memory() is first
    assert any(len(answers._ids) for answers in first._answers.values())
    engine = Engine(Settings())
    kept = engine.companion(ConversationMemory)
    assert engine.companion(ConversationMemory) is kept
    assert kept is not first, "each engine has its own"
    gone = weakref.ref(kept)
    del kept
    assert engine.close(30)
    assert gone() is None
    assert engine.companion(ConversationMemory) is not engine.companion(ConversationMemory), (
        "a closed one keeps nothing"
    )
    assert model.invoke(told).text


def test_each_answer_comes_back_in_its_own_place():
    answers, said = (
        GeneratedIds(),
        [Message.user("a"), Message.assistant("b"), Message.user("a"), Message.assistant("b")],
    )
    keep(answers, said[:2], [1])
    keep(answers, said, [2])
    assert {number: list(ids) for number, ids in answers.of("gemma", History("", said)).items()} == {1: [1], 3: [2]}
    assert not answers.of("gemma", History("", said[2:][::-1]))


def test_formats_and_calls_are_told_apart():
    answers = GeneratedIds()
    keep(answers, [Message.assistant("a")], [1])
    assert not answers.of("gemma4", History("", [Message.assistant("a")]))
    assert not answers.of("gemma", History("", [Message.user("a")]))
    assert not answers.of("gemma", History("", [Message.assistant("a", thinking="a")]))
    assert not answers.of("gemma", History("", [Message.assistant("a", calls=[ToolCall("a")])]))
    strange = Message.assistant("\ud800", calls=[ToolCall("a", {"n": 10**30, "x": float("nan")}, "c1")])
    keep(answers, [strange], [2])
    again = Message.assistant("\ud800", calls=[ToolCall("a", json.loads(json.dumps(strange.calls[0].arguments)), "c2")])
    assert list(answers.of("gemma", History("", [again]))[0]) == [2]
    assert answers.of("gemma", History("", [again])) == answers.of("gemma", History("", [strange]))


def test_answers_go_with_their_model():
    engine, kept = ScriptedEngine(), ConversationMemory()
    keep(kept.answers_of(engine.model), [Message.assistant("a")], [1])
    assert kept.answers_of(engine.model).of("gemma", History("", [Message.assistant("a")]))
    assert len(kept._answers) == 1
    del engine
    gc.collect()
    assert len(kept._answers) == 0


@pytest.mark.parametrize("dialect", ["gemma", "gemma4"])
def test_the_next_turn_reads_what_is_new(dialect, chat_of, running):
    model = chat_of(dialect, temperature=1.0, seed=3)  # random bytes, which no tokenizer would spell like that
    first = model.invoke("HELLO")
    told = [HumanMessage("HELLO"), first, HumanMessage("MORE")]
    second = model.invoke(told)
    cached = second.usage_metadata["input_token_details"]["cache_read"]
    before = first.usage_metadata["total_tokens"]
    assert before - 2 <= cached <= before
    assert (
        second.usage_metadata["input_tokens"] - cached <= len("MORE") + 30
    )  # a turn's frame is spelled in letters here
    assert second.usage_metadata["input_tokens"] == model.get_num_tokens_from_messages(told)


def test_reuse_changes_no_answer(chat_of, running):
    model = chat_of("gemma4")
    told = [HumanMessage("HELLO"), model.invoke("HELLO"), HumanMessage("MORE")]
    warm, cold = model.invoke(told), model.invoke(told, scope="another")
    assert cold.usage_metadata["input_token_details"]["cache_read"] == 0
    assert warm.content == cold.content
