"""Questions with a few possible answers, as a model reads them: the state, the question, the answers.

The state comes first: several questions about the same one share what was read of it.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_gemma_jax.chat.history.content_blocks import read_blocks
from langchain_gemma_jax.dialects import MediaPart
from langchain_gemma_jax.errors import InputError, MediaError
from langchain_gemma_jax.media.block_forms import is_media

if TYPE_CHECKING:
    from langchain_core.decisions import Question, State

LETTERS = string.ascii_uppercase + string.ascii_lowercase
YES_OR_NO = ("Yes", "No")
_SPEAKERS = {"human": "user", "ai": "assistant", "tool": "result of a tool"}


@dataclass(frozen=True)
class AskedQuestion:
    """A question as a model reads it, and the labels. The answer begins with one of them.

    With a ``picture``, the text is a policy, or the name of one that the model was trained on.
    """

    text: str
    labels: tuple[str, ...]
    picture: MediaPart | None = None


def asked_question(name: str, state: State, question: Question) -> AskedQuestion:
    """Return a question about a state as a text, or about a picture.

    Raises:
        InputError: it asks for what no model of text can say, or has more answers than there are letters.
    """
    if (picture := picture_of(state)) is not None:
        return _of_picture(name, picture, question)
    about = state_text(state)
    match question.type:
        case "noul":
            labels: tuple[str, ...] = YES_OR_NO
            criteria = question.criteria
            known = () if criteria is None else zip(labels, (criteria.true, criteria.false), strict=True)
            lines = [f"{label}: {_written(meant)}" for label, meant in known if meant is not None]
            how = "Answer Yes or No."
        case "choice":
            named = question.criteria.items()
            labels = _letters(name, len(named))
            meanings = [f"{key}" if meant is None else f"{key}: {_written(meant)}" for key, meant in named]
            lines = [f"{label}) {each}" for label, each in zip(labels, meanings, strict=True)]
            how = "Answer with the letter of one of them."
        case "score":
            labels = _letters(name, len(question.criteria))
            lines = [f"{label}) {_written(each)}" for label, each in zip(labels, question.criteria, strict=True)]
            how = "Answer with the letter of the one that fits best."
        case _:
            raise InputError(f"questions[{name!r}]: this model reads text alone; found one of type {question.type!r}.")
    return AskedQuestion("\n".join([about, "", _written(question.instructions), *lines, how]), labels)


def picture_of(state: State) -> MediaPart | None:
    """Return the picture that a state consists of, as a block or as a user's message. None: it is something else."""
    alone = state[0] if isinstance(state, Sequence) and not isinstance(state, str) and len(state) == 1 else state
    if isinstance(alone, Mapping) and _is_media(alone):
        alone = HumanMessage([dict(alone)])
    if not isinstance(alone, HumanMessage):
        return None
    found = read_blocks(alone, "state")
    return found.media[0] if len(found.media) == len(found.parts) == 1 else None


def _of_picture(name: str, picture: MediaPart, question: Question) -> AskedQuestion:
    if question.type != "noul" or question.criteria is not None or not isinstance(question.instructions, str):
        raise InputError(
            f"questions[{name!r}]: a picture is judged by a policy, with yes or no: Noul(instructions=...) with the "
            "policy's text or name, and without criteria. Other questions are answered of words alone."
        )
    return AskedQuestion(question.instructions.strip(), YES_OR_NO, picture)


def state_text(state: State) -> str:
    """Return the state that a question is about as text.

    Raises:
        InputError: it holds something that is no text.
    """
    if isinstance(state, Mapping) and not _is_media(state):
        return "\n\n".join(f"{key}: {_in_words(value)}" for key, value in state.items())
    return _in_words(state)


def _in_words(value: object) -> str:
    match value:
        case str():
            return value
        case BaseMessage():
            return _message(value)
        case Sequence() if value and all(isinstance(each, BaseMessage) for each in value):
            return "\n".join(_message(cast("BaseMessage", each)) for each in value)
        case _:
            return json.dumps(_plain(value), ensure_ascii=False)


def _written(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(_plain(content), ensure_ascii=False)


def _message(message: BaseMessage) -> str:
    found = read_blocks(message, "state")
    if found.media:
        raise MediaError(found.media[0].block.at, "questions are answered of words alone. Describe what is in it")
    text = "\n".join(found.texts)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    parts = [text] * bool(text) + [f"calls {call['name']} with {_written(call['args'])}" for call in calls]
    failed = isinstance(message, ToolMessage) and message.status == "error"
    return f"{_SPEAKERS.get(message.type, message.type)}{' (error)' * failed}: " + "\n".join(parts)


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Mapping):
        if _is_media(value):
            raise InputError(f"state: this model reads text alone; found a block of type {value['type']!r}.")
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _is_media(value: Mapping[str, object]) -> bool:
    return is_media(value) and not value.keys().isdisjoint({"base64", "url", "file_id", "data", "source"})


def _letters(name: str, count: int) -> tuple[str, ...]:
    if count > len(LETTERS):
        raise InputError(f"questions[{name!r}]: expected at most {len(LETTERS)} answers to choose from, found {count}.")
    return tuple(LETTERS[:count])
