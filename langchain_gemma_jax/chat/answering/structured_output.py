"""``with_structured_output``: from a schema to a model that answers in it, and a reader of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any, Literal, get_args

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputKeyToolsParser, JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.runnables import Runnable, RunnableConfig, RunnableGenerator, RunnableLambda, RunnableMap
from langchain_core.utils.json import parse_json_markdown
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import TypeAdapter

from langchain_gemma_jax.chat.answering.cut_off import awhole_only, whole_only
from langchain_gemma_jax.chat.asking.schemas import SchemaLike, is_type_form, json_schema
from langchain_gemma_jax.errors import InputError

Method = Literal["json_schema", "function_calling", "json_mode"]


@dataclass(frozen=True)
class Structure:
    """A request of ``with_structured_output``: the schema, and the method of getting objects of it."""

    schema: SchemaLike | None
    method: str
    strict: bool | None

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(f"method: expected one of {', '.join(get_args(Method))}; found {self.method!r}.")
        if self.schema is None and self.method != "json_mode":
            raise InputError('schema: expected one, found None. Only method="json_mode" goes without.')
        if self.method == "function_calling" and is_type_form(self.schema):
            raise InputError(
                f'method="function_calling": a call has an object of one class, and {self.schema!r:.200} is none. Take '
                'method="json_schema", or bind_tools([A, B]) for a choice of several.'
            )
        if self.strict is not None and self.method == "json_mode":
            raise InputError('strict: method="json_mode" keeps to what it can promise. Leave strict out.')

    @property
    def response_format(self) -> dict[str, Any]:
        """The ``response_format`` of a call whose answer is the object itself, and not a tool's call."""
        if self.method == "json_mode":
            known = {} if self.schema is None else {"schema": dict(json_schema(self.schema))}
            return {"type": "json_object"} | known
        found = dict(json_schema(self.schema))
        strict = {} if self.strict is None else {"strict": self.strict}
        return {"type": "json_schema", "json_schema": {"schema": found} | strict}

    @property
    def for_tracing(self) -> dict[str, Any]:
        """The schema and the method, in the form of LangSmith's tracing."""
        kwargs: dict[str, Any] = {"method": self.method} | ({} if self.strict is None else {"strict": self.strict})
        return {"kwargs": kwargs, "schema": None if self.schema is None else json_schema(self.schema)}

    def reader(self, tool: str | None) -> Runnable[AIMessage, Any]:
        """Return a runnable that makes an object of an answer: of its call of this tool, or of its words."""
        # LangChain's parsers repair JSON that breaks off, and give None where there is no call.
        whole: Runnable[AIMessage, AIMessage] = RunnableGenerator(whole_only, awhole_only)
        # They take classes of pydantic 1 and 2.
        model: Any = self.schema if isinstance(self.schema, type) and is_basemodel_subclass(self.schema) else None
        if tool is not None:
            if model is not None:
                return whole | PydanticToolsParser(tools=[model], first_tool_only=True)
            found: Runnable[AIMessage, Any] = whole | JsonOutputKeyToolsParser(key_name=tool, first_tool_only=True)
        elif model is not None:
            return whole | PydanticOutputParser(pydantic_object=model)
        elif is_type_form(self.schema) or (isinstance(self.schema, type) and issubclass(self.schema, Enum)):
            return whole | RunnableLambda(_value_of(self.schema))
        else:
            found = whole | JsonOutputParser()
        if isinstance(self.schema, type) and is_dataclass(self.schema):
            return found | RunnableLambda(_maker(self.schema))
        return found


def with_raw(model: Runnable[LanguageModelInput, AIMessage], reader: Runnable[AIMessage, Any]) -> Runnable[Any, Any]:
    """Return a runnable that gives the answer, the object made of it, and what went wrong in making it."""

    def read(outcome: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        try:
            return outcome | {"parsed": reader.invoke(outcome["raw"], config), "parsing_error": None}
        except Exception as error:  # noqa: BLE001  whatever it is, the message comes with it
            return outcome | {"parsed": None, "parsing_error": error}

    async def aread(outcome: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        try:
            return outcome | {"parsed": await reader.ainvoke(outcome["raw"], config), "parsing_error": None}
        except Exception as error:  # noqa: BLE001
            return outcome | {"parsed": None, "parsing_error": error}

    return RunnableMap(raw=model) | RunnableLambda(read, aread)


def _value_of(kind: SchemaLike) -> Callable[[AIMessage], Any]:
    """Return a maker of an enum's members, or of other types' values, from whole answers: half a value is none."""
    made = _maker(kind)

    def value(answer: AIMessage) -> Any:
        return made(parse_json_markdown(str(answer.text)))

    return value


def _maker(made: SchemaLike) -> Callable[[Mapping[str, Any]], Any]:
    return TypeAdapter(made).validate_python
