"""The examination through the door that everybody uses: ``ChatGemmaJax``, with LangChain's messages and tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax
from training.data.conversation import Call, Calls, Conversation, Say, Tool, User
from training.data.render import Question
from training.parse import Answer

LONGEST = 320  # tokens of an answer; the longest that is wanted has about half


class ChatPlayer:
    """A chat model that answers greedily."""

    def __init__(self, folder: Path) -> None:
        self._model = ChatGemmaJax(model=str(folder), temperature=0, max_tokens=LONGEST)

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """What it does at each question, one after another."""
        return [self._answer(each) for each in questions]

    def _answer(self, question: Question) -> Answer:
        declarations = [declared(tool) for tool in question.conversation.tools]
        model = self._model.bind_tools(declarations, strict=False) if declarations else self._model
        message = model.invoke(list(messages(question.conversation, question.number)))
        return Answer(tuple((call["name"], call["args"]) for call in message.tool_calls), message.text.strip())


def messages(conversation: Conversation, steps: int) -> Iterator[BaseMessage]:
    """A conversation up to, and without, the step of the model with this number."""
    if conversation.system:
        yield SystemMessage(conversation.system.strip())
    for turn in conversation.turns:
        if isinstance(turn, User):
            yield HumanMessage(turn.text.strip())
            continue
        for step in turn.steps:
            if steps == 0:
                return
            steps -= 1
            yield from _told(step)


def declared(tool: Tool) -> dict[str, Any]:
    """A tool in OpenAI's form."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _told(step: Calls | Say) -> Iterator[BaseMessage]:
    if isinstance(step, Say):
        yield AIMessage(step.text.strip())
        return
    calls = [
        {"name": each.tool, "args": each.arguments, "id": f"call_{number}", "type": "tool_call"}
        for number, each in enumerate(step.calls)
    ]
    yield AIMessage("", tool_calls=calls)
    for number, each in enumerate(step.calls):
        yield ToolMessage(_content(each), name=each.tool, tool_call_id=f"call_{number}")


def _content(call: Call) -> str:
    return call.reply if isinstance(call.reply, str) else json.dumps(call.reply, ensure_ascii=False)
