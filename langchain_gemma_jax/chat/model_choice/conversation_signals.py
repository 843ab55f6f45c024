"""Signals of a conversation that are there before a model has read it, for the choice of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_gemma_jax.routing import Signals

CHARACTERS_A_TOKEN = 4  # about, where there is no count


@dataclass(frozen=True)
class ConversationSignals:
    """The signals in a conversation's messages alone."""

    tokens: int
    results: int
    failed: int
    quiet_turns: int
    said: str = field(default="", repr=False)

    def signals(
        self,
        sizes: tuple[str, ...],
        last: str | None,
        *,
        tools: int,
        forced: bool,
        structured: bool,
        judged: bool = False,
        resident: frozenset[str] = frozenset(),
        switch_s: Mapping[str, float] | None = None,
    ) -> Signals:
        """Return the signals to route by: those of the messages, and the ones given."""
        return Signals(
            sizes=sizes,
            last=last,
            tools=tools,
            forced=forced,
            structured=structured,
            judged=judged,
            prompt_tokens=self.tokens,
            results=self.results,
            failed=self.failed,
            said=self.said,
            quiet_turns=self.quiet_turns,
            resident=resident,
            switch_s=switch_s or {},
        )


def conversation_signals(messages: Sequence[BaseMessage]) -> ConversationSignals:
    """Return the signals in a conversation's messages."""
    asked = max((number for number, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    since = messages[asked:]
    bad = sum(len(each.invalid_tool_calls) for each in since if isinstance(each, AIMessage))
    failed = sum(each.status == "error" for each in since if isinstance(each, ToolMessage))
    results = sum(isinstance(each, ToolMessage) for each in since)
    question = messages[asked].text if messages and isinstance(messages[asked], HumanMessage) else ""
    return ConversationSignals(_tokens(messages), results, bad + failed, _quiet_turns(messages[:asked]), str(question))


def _tokens(messages: Sequence[BaseMessage]) -> int:
    """Return about how many tokens a conversation has: the count of its last answer, and an estimate of the rest."""
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if isinstance(message, AIMessage) and message.usage_metadata is not None:
            since = sum(len(each.text) for each in messages[number + 1 :])
            return message.usage_metadata["total_tokens"] + since // CHARACTERS_A_TOKEN
    return sum(len(each.text) for each in messages) // CHARACTERS_A_TOKEN


def _quiet_turns(before: Sequence[BaseMessage]) -> int:
    """Return the number of turns in a row, up to the end, in which no tool was called."""
    turns = 0
    for message in reversed(before):
        if isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and message.tool_calls):
            return turns
        turns += isinstance(message, HumanMessage)
    return turns
