"""``ChatGemmaJax``: Gemma as a LangChain chat model, inside this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.language_models import BaseChatModel, LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.utils import LC_ID_PREFIX
from pydantic import ConfigDict, SecretStr

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.ancestry import refuse_at_the_end
from langchain_gemma_jax.chat.answering.messages_out import Chunks, generation, result
from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents, understood
from langchain_gemma_jax.chat.answering.structured_output import Method, Structure, with_raw
from langchain_gemma_jax.chat.asking.answer_format import checked_format
from langchain_gemma_jax.chat.asking.answer_grammar import check_answer, check_bound, check_tools
from langchain_gemma_jax.chat.asking.model_profile import profile_of, profile_of_all
from langchain_gemma_jax.chat.asking.options import Options, constructor_arguments, options, renamed
from langchain_gemma_jax.chat.asking.schemas import SchemaLike
from langchain_gemma_jax.chat.asking.tool_choice import ToolLike, checked_tools, openai_tools, plain_choice
from langchain_gemma_jax.chat.asking.tracing import tracing_params
from langchain_gemma_jax.chat.calling.answerer import THIS_PROCESS, Answerer
from langchain_gemma_jax.chat.calling.batch_concurrency import Configs, together
from langchain_gemma_jax.chat.calling.reading_ahead import Preparation
from langchain_gemma_jax.chat.calling.starting import called_together, clock_of
from langchain_gemma_jax.routing.route import AUTO, as_route
from langchain_gemma_jax.settings.table import SETTINGS, ChatSettings


class ChatGemmaJax(ChatSettings, BaseChatModel):
    """Gemma as a chat model, run by JAX inside this process.

        llm = ChatGemmaJax()  # a small embedded model
        llm = ChatGemmaJax(model="google/gemma-3-1b-it", max_tokens=256)
        llm.invoke("What is the capital of France?").text

    Making one only checks its settings. The model loads when it is first used, once per process for all objects,
    threads and event loops. Settings (docs/settings.md) also work for one call:
    ``llm.invoke("Hello", temperature=0, model="./my-gemma")``. An unknown argument gives an ``UnknownOptionWarning``.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """

    model_config = ConfigDict(defer_build=False)

    server: str | None = None
    """The engine that answers: "auto", this user's ``gemma-jax serve``; "unix:/path/to/a.sock";
    "http://127.0.0.1:8000"; "off", this process. None: GEMMA_JAX_SERVER, or this process. See docs/serve.md."""
    api_key: SecretStr | None = None
    """The server's API key. None: that of GEMMA_JAX_API_KEY, if it is set."""
    streaming: bool = False
    """Stream inside ``invoke`` too, so that callbacks get each token."""

    if not TYPE_CHECKING:  # type checkers know the fields as arguments, and are left to it

        def __init__(self, **given: Any) -> None:
            super().__init__(**constructor_arguments(given, set(type(self).model_fields), type(self).__name__))
            self._answerer()  # refuses an address that is malformed
            if self.profile is None:  # an older LangChain does not ask for it
                self.profile = self._resolve_model_profile()

    # LangChain's properties of a model.

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True  # plain values only

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {"token": "HF_TOKEN", "api_key": "GEMMA_JAX_API_KEY"}

    @property
    def _llm_type(self) -> str:
        return "gemma-jax"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {name: value for name, value in {**self._settings(), "server": self.server}.items() if value is not None}

    def _resolve_model_profile(self) -> ModelProfile | None:
        route = as_route(self.route) if self.model == AUTO else None
        if route is not None:
            return profile_of_all(route.sizes.values(), self.max_context)
        return profile_of(self.model, self.max_context)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        given = renamed(kwargs) | ({} if stop is None else {"stop": stop})
        return tracing_params(lambda name: getattr(self, name) if given.get(name) is None else given[name])

    # Generating.

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        options = self._options(stop, kwargs)
        return result(self._answerer().answer(messages, options, clock_of(self, options)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        options = self._options(stop, kwargs)
        return result(await self._answerer().aanswer(messages, options, clock_of(self, options)))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        options = self._options(stop, kwargs)
        chunks = Chunks(as_blocks=self.output_version == "v1")
        yield from map(generation, self._answerer().stream(messages, options, clock_of(self, options), chunks))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        options = self._options(stop, kwargs)
        chunks = Chunks(as_blocks=self.output_version == "v1")
        coming = self._answerer().astream(messages, options, clock_of(self, options), chunks)
        async with aclosing(coming) as found:
            async for chunk in found:
                yield generation(chunk)

    # LangChain's newest streams take events, if a model has them, and else make them of chunks.

    @property
    def _stream_chat_model_events(self) -> Callable[..., Iterator[dict[str, Any]]] | None:
        return self._events if understood() else None

    @property
    def _astream_chat_model_events(self) -> Callable[..., AsyncIterator[dict[str, Any]]] | None:
        return self._aevents if understood() else None

    def _events(
        self, messages: list[BaseMessage], *, run_manager: BaseRunManager, stop: list[str] | None = None, **given: Any
    ) -> Iterator[dict[str, Any]]:
        options = self._options(stop, given)
        shown = ProtocolEvents(_message_id(run_manager))
        return self._answerer().stream(messages, options, clock_of(self, options), shown)

    def _aevents(
        self, messages: list[BaseMessage], *, run_manager: BaseRunManager, stop: list[str] | None = None, **given: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        options = self._options(stop, given)
        shown = ProtocolEvents(_message_id(run_manager))
        return self._answerer().astream(messages, options, clock_of(self, options), shown)

    def batch(self, inputs: list[LanguageModelInput], config: Configs = None, **kwargs: Any) -> list[AIMessage]:
        """Answer all inputs at once: they share the engine's steps. See ``Runnable.batch``."""
        with called_together(self):
            return super().batch(inputs, together(config), **kwargs)

    async def abatch(self, inputs: list[LanguageModelInput], config: Configs = None, **kwargs: Any) -> list[AIMessage]:
        """Answer all inputs at once: they share the engine's steps. See ``Runnable.abatch``."""
        with called_together(self):
            return await super().abatch(inputs, together(config), **kwargs)

    # Tools.

    def bind_tools(
        self,
        tools: Sequence[ToolLike],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools that it may call.

        Args:
            tools: functions, LangChain tools, pydantic and TypedDict classes, JSON schemas with a title, tools in the
                form of OpenAI, Anthropic or Bedrock.
            tool_choice: "auto", the default: the model may call tools. "any" or "required": it must call one. A tool's
                name: it must call that one. "none": it must not call any. Arguments always match their schemas.
            strict: what to do about keywords of a schema that a grammar cannot enforce. True: an error. False: ignore
                them. None: a warning, and a call that violates them is an ``invalid_tool_call``.
            kwargs: settings of this model, and ``response_format``, the schema of answers that are not calls.

        Raises:
            InputError: a tool has an unknown form, or the choice is not possible.
            SchemaError: a schema is malformed, or is strict and has a keyword that cannot be enforced. It says where.
        """
        formed = openai_tools(tools, strict=self.strict if strict is None else strict)
        bound = checked_tools(formed)
        choice = plain_choice(tool_choice, [tool.name for tool in bound])
        check_bound(formed, bound, choice, self.dialect)
        check_answer(checked_format(kwargs.get("response_format")))
        if tool_choice is not None:
            kwargs["tool_choice"] = choice
        return self.bind(tools=formed, **kwargs)

    def with_structured_output(
        self,
        schema: SchemaLike | None = None,
        *,
        method: Method = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the model with answers that are objects of a schema, always valid, even from a tiny model.

            class City(BaseModel):
                name: str
                inhabitants: int = Field(ge=0)

            city = llm.with_structured_output(City).invoke("Paris has 2,100,000 inhabitants.")

        Args:
            schema: a class of pydantic (2 or 1), a TypedDict, a dataclass, an Enum, a JSON schema, or a type made of
                those: ``Union[A, B]``, ``list[A]``, ``Literal["yes", "no"]``. Classes of pydantic and dataclasses give
                their objects, an Enum its member, a type its value, the others dictionaries.
            method: "json_schema": the model sees the schema and must match it. "function_calling": the model must call
                a tool with that schema. "json_mode": the model does not see the schema, so the prompt must describe it.
            include_raw: return ``{"raw": the message, "parsed": the object or None, "parsing_error": ...}``.
            strict: False ignores keywords that a grammar cannot enforce; otherwise they are an error.
            kwargs: settings of this model.

        Raises:
            InputError: the schema has an unknown form, or there is no such method.
            SchemaError: the schema is malformed, or has a keyword that cannot be enforced. It says where.
        """
        strict = self.strict if strict is None else strict
        asked = Structure(schema, method, strict)
        tool = None
        if method == "function_calling":
            formed = openai_tools([schema], strict=strict)
            (asked_tool,) = checked_tools(formed)
            tool = asked_tool.name
            check_tools([asked_tool], tool, self.dialect, lenient=strict is False)
            kwargs = {"parallel_tool_calls": False} | kwargs
            model = self.bind_tools(formed, tool_choice=tool, ls_structured_output_format=asked.for_tracing, **kwargs)
        else:
            check_answer(checked_format(asked.response_format))
            model = self.bind(
                response_format=asked.response_format, ls_structured_output_format=asked.for_tracing, **kwargs
            )
        reader = asked.reader(tool)
        return with_raw(model, reader) if include_raw else model | reader

    # Reading ahead.

    def prepare(self, input: LanguageModelInput, **kwargs: Any) -> Preparation:  # noqa: A002  as ``invoke`` has it
        """Read a prompt in advance, while the engine is idle. Returns at once.

            ahead = llm.prepare([*messages, tool_result])  # while the user still types
            llm.invoke([*messages, tool_result, question])  # reads only the question

        Every other request goes first. ``ahead.cancel()`` stops it, and ``ahead.result()`` waits for it. ``kwargs`` are
        those of ``invoke``. If tools will be bound, pass them as ``tools=``: they are part of the prompt.

        Raises:
            InputError: a setting is not possible. An error in the messages is raised by ``result()``.
        """
        answerer, messages, options = self._ahead(input, kwargs)
        clock = clock_of(self, options)
        return Preparation(lambda: answerer.aread_ahead(messages, options, clock))

    async def aprepare(self, input: LanguageModelInput, **kwargs: Any) -> bool:  # noqa: A002
        """Read a prompt in advance, as ``prepare`` does, and wait for it. Canceling the task stops it.

        True: all of it is in memory now. False: other requests came first, and it was given up.
        """
        answerer, messages, options = self._ahead(input, kwargs)
        return await answerer.aread_ahead(messages, options, clock_of(self, options))

    def _ahead(
        self, given: LanguageModelInput, kwargs: Mapping[str, Any]
    ) -> tuple[Answerer, list[BaseMessage], Options]:
        tools = {} if kwargs.get("tools") is None else {"tools": openai_tools(kwargs["tools"], strict=self.strict)}
        return self._answerer(), self._convert_input(given).to_messages(), self._options(None, {**kwargs, **tools})

    # Counting.

    def get_token_ids(self, text: str) -> list[int]:
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        return self._answerer().token_ids(text, self._options(None, {}))

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[ToolLike] | None = None) -> int:
        """Return the tokens of this conversation as a prompt: what ``usage_metadata["input_tokens"]`` would be."""
        return self._answerer().count_tokens(messages, self._options(None, {"tools": tools}))

    def _answerer(self) -> Answerer:
        """Return the engine that answers."""
        if self.server is None:
            return THIS_PROCESS
        from langchain_gemma_jax.client.remote_model import answerer_at

        return answerer_at(self.server, self.api_key)

    def _options(self, stop: list[str] | None, given: Mapping[str, Any]) -> Options:
        return options({**self._settings(), "token": self.token}, stop, given)

    def _settings(
        self, names: Iterable[str] = SETTINGS, refuse: Callable[[], None] = refuse_at_the_end
    ) -> dict[str, Any]:
        refuse()  # before any import. Both are parameters: a module's globals are gone at the interpreter's end
        return {name: getattr(self, name) for name in names}


def _message_id(run: BaseRunManager) -> str:
    return f"{LC_ID_PREFIX}-{run.run_id}"
