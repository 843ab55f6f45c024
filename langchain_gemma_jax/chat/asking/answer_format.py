"""The form that an answer in words has to have: none, JSON, or JSON of a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_gemma_jax.chat.asking.schemas import Schema, json_schema
from langchain_gemma_jax.dialects import Message
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.schema.schema_facts import KINDS

_ANY_OBJECT: Schema = {"type": "object"}


@dataclass(frozen=True)
class AnswerFormat:
    """An answer in words that has to be JSON of a schema."""

    schema: Schema
    lenient: bool  # what a grammar cannot promise is left out instead of refused
    in_prompt: bool  # the system message holds the schema

    def added_to(self, messages: Sequence[Message]) -> list[Message]:
        """Return the conversation with the schema at the end of the system message."""
        if not self.in_prompt:
            return list(messages)
        text = instruction(self.schema)
        if messages and messages[0].role == "system":
            *before, last = messages[0].texts or [""]
            return [Message.system(*before, f"{last}\n\n{text}" if last else text), *messages[1:]]
        return [Message.system(text), *messages]


def instruction(schema: Schema) -> str:
    """Return what the system message says when the answer has to be JSON of a schema."""
    return "Answer in JSON of this schema:\n" + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def checked_format(response_format: object) -> AnswerFormat | None:
    """Return the form that a ``response_format`` asks for, in OpenAI's words or as a schema in any form. None: any.

    Raises:
        InputError: the format is none of these.
    """
    if response_format is None:
        return None
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if isinstance(response_format, Mapping):
        if kind == "text":
            return None
        wrapped = response_format.get("json_schema")
        strict = wrapped.get("strict") if isinstance(wrapped, Mapping) else response_format.get("strict")
        if kind == "json_object":
            # The caller's prompt says what the JSON holds. A schema is enforced if there is one.
            known = response_format.get("schema")
            return AnswerFormat(_ANY_OBJECT if known is None else json_schema(known), lenient=True, in_prompt=False)
        if kind == "json_schema" and not isinstance(wrapped, Mapping) and "schema" not in response_format:
            raise InputError(
                'response_format: expected {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}; '
                f"found {response_format!r:.200}."
            )
        if isinstance(kind, str) and kind not in {"json_schema", *KINDS}:
            raise InputError(
                'response_format: expected {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", ...} or '
                f"a JSON schema; found the type {kind!r:.100}."
            )
        return AnswerFormat(json_schema(response_format), lenient=strict is False, in_prompt=True)
    return AnswerFormat(json_schema(response_format), lenient=False, in_prompt=True)
