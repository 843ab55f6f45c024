"""A tenant's words are in no log, warning or stream, at any level, however its request goes or ends."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import llguidance
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.errors import GemmaJaxError, InputError

SECRET = "canary7f3a91"
SAID = [
    SystemMessage(f"You work for {SECRET}."),
    HumanMessage([{"type": "text", "text": f"Read {SECRET}.pdf"}], name=SECRET),
    AIMessage("", tool_calls=[{"name": f"read_{SECRET}", "args": {f"key_{SECRET}": SECRET}, "id": SECRET}]),
    ToolMessage(f"The result is {SECRET}.", tool_call_id=SECRET, name=f"read_{SECRET}"),
    HumanMessage(f"And now, {SECRET}?"),
]
SCHEMA = {
    "title": f"Order_{SECRET}",
    "description": f"An order of {SECRET}.",
    "type": "object",
    "properties": {
        f"key_{SECRET}": {"enum": [f"{SECRET}-a", f"{SECRET}-b"], "description": SECRET},
        "code": {"type": "string", "pattern": f"^{SECRET}[0-9]{{1,9}}$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": [f"key_{SECRET}", "code", "count"],
    "additionalProperties": False,
}
TOOL = {"name": f"read_{SECRET}", "description": f"Reads {SECRET}.", "parameters": {**SCHEMA, "title": "Read"}}
SETTINGS = {
    "scope": f"scope_{SECRET}",
    "max_tokens": 24,
    "temperature": 3.0,
    "timeout": 100,
    "stop": [f"stop {SECRET}"],
}


@pytest.fixture
def heard(caplog, capfd, recwarn):
    """Everything that is logged at any level, warned of, or written, by Python or below it."""
    caplog.set_level(logging.DEBUG)

    def heard() -> str:
        out, err = capfd.readouterr()
        records = [f"{record.getMessage()} {record.args} {record.exc_info}" for record in caplog.records]
        return "\n".join([*records, caplog.text, out, err, *(str(warning.message) for warning in recwarn)])

    return heard


def everything(llm, seed):
    """Each way of asking, with secrets in all that can be said. Gives the errors."""
    asks = [
        lambda: llm.invoke(SAID, seed=seed),
        lambda: llm.bind_tools([TOOL], tool_choice="any").invoke(SAID, seed=seed),
        lambda: llm.bind_tools([TOOL]).invoke(SAID, seed=seed),
        lambda: [*llm.bind_tools([TOOL], tool_choice="any").stream(SAID, seed=seed)],
        lambda: llm.with_structured_output(SCHEMA, include_raw=True).invoke(SAID, seed=seed),
        lambda: llm.with_structured_output(SCHEMA).batch([SAID] * 2),
        lambda: llm.with_structured_output(SCHEMA, method="function_calling").invoke(SAID),
        lambda: asyncio.run(llm.with_structured_output(SCHEMA, include_raw=True).ainvoke(SAID)),
    ]
    for ask in asks:
        try:
            ask()
        except Exception as error:  # noqa: BLE001  each of them is looked at
            yield error


WRONG = [
    lambda llm: llm.bind_tools([TOOL, TOOL]),
    lambda llm: llm.with_structured_output({**SCHEMA, "properties": {SECRET: {"type": SECRET}}}),
    lambda llm: llm.with_structured_output({**SCHEMA, "properties": {SECRET: {"pattern": f"({SECRET}"}}}),
    lambda llm: llm.invoke([HumanMessage([{"type": "image", "url": f"file:///{SECRET}.png"}])]),
    lambda llm: llm.invoke(f"{SECRET} " * 2000),
    lambda llm: llm.invoke(SAID, timeout=0.0),
    lambda llm: llm.invoke(SAID, tool_choice=SECRET),
    lambda llm: llm.invoke(SAID, max_tokens=SECRET),
    lambda llm: llm.invoke(SAID, model=f"/nowhere/{SECRET}"),
]


@pytest.mark.parametrize("dialect", ["gemma", "gemma4"])
def test_nothing_of_it_is_heard(chat_of, heard, dialect):
    llm = chat_of(dialect, **SETTINGS)
    for error in everything(llm, seed=1):
        assert not isinstance(error, TypeError), error
    for wrong in WRONG:
        with suppress(GemmaJaxError, ValueError):
            wrong(llm)
    llm.invoke("Hello", api_token=SECRET, scope=f"scope_{SECRET}")
    found = heard()
    assert "takes no api_token" in found, "which shows that warnings are heard"
    assert SECRET not in found


BYTES = 262  # tokens of the vocabulary in which each byte is one
FAULTS = ["compute_bitmask", "try_consume_tokens", "validate_tokens", "compute_ff_tokens", "nothing is allowed"]


def failing_matcher(fault, failures):
    """llguidance's matcher, whose errors can hold the grammar and the text so far, with one of its calls failing."""
    real = llguidance.LLMatcher

    class Failing:
        grammar_from_lark = staticmethod(real.grammar_from_lark)
        grammar_from_json_schema = staticmethod(real.grammar_from_json_schema)

        def __new__(cls, tokenizer, *args, **named):
            made = real(tokenizer, *args, **named)
            return cls._of(made) if tokenizer.vocab_size > BYTES else made  # schemas are read by bytes

        @classmethod
        def _of(cls, made):
            failing = object.__new__(cls)
            failing._real = made
            return failing

        def deep_copy(self):
            return self._of(self._real.deep_copy())

        def __getattr__(self, name):
            found = getattr(self._real, name)
            return (lambda *args: self._failing(found, *args)) if name == fault else found

        def compute_bitmask(self):
            found = self.__getattr__("compute_bitmask")()
            if fault == "nothing is allowed":
                failures.append(fault)
                return bytes(len(found))
            return found

        def get_error(self):
            return f"{self._real.get_error()} in the grammar of {SECRET}"

        def _failing(self, call, *args):
            self._real.consume_tokens([0, 0, 0])  # which is an error that it does not leave
            failures.append(fault)
            if fault != "compute_bitmask":
                raise ValueError(self.get_error())
            return call(*args)

    return Failing


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_of_it_is_heard_when_its_grammar_fails(chat_of, heard, monkeypatch, fault):
    failures = []
    monkeypatch.setattr(llguidance, "LLMatcher", failing_matcher(fault, failures))
    new = {**SCHEMA, "title": f"Order_{SECRET}_{fault}", "required": ["code", "count"]}  # which was not compiled before
    llm = chat_of("gemma", **SETTINGS)
    for seed in range(4):
        try:
            llm.with_structured_output(new, include_raw=True).invoke(SAID, seed=seed)
        except InputError:
            raise
        except GemmaJaxError:  # its own request may say what was wrong
            continue
    found = heard()
    if fault != "validate_tokens":  # which is asked for drafts alone
        assert failures
    if fault in {"compute_bitmask", "nothing is allowed"}:
        assert "given up" in found
    assert SECRET not in found
