"""``ChatGemmaJax``: Gemma as a LangChain chat model, inside this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
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
from pydantic import ConfigDict, Field, SecretStr

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.ancestry import refuse_at_the_end
from langchain_gemma_jax.chat.answering.messages_out import Chunks, generation, result
from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents, understood
from langchain_gemma_jax.chat.answering.structured_output import Method, Structure, with_raw
from langchain_gemma_jax.chat.asking.answer_format import checked_format
from langchain_gemma_jax.chat.asking.answer_grammar import check_answer, check_bound, check_tools
from langchain_gemma_jax.chat.asking.model_profile import profile_of, profile_of_all
from langchain_gemma_jax.chat.asking.options import SETTINGS, Options, constructor_arguments, options, renamed
from langchain_gemma_jax.chat.asking.schemas import SchemaLike
from langchain_gemma_jax.chat.asking.tool_choice import ToolLike, checked_tools, openai_tools, plain_choice
from langchain_gemma_jax.chat.asking.tracing import tracing_params
from langchain_gemma_jax.chat.calling.answerer import THIS_PROCESS, Answerer
from langchain_gemma_jax.chat.calling.batch_concurrency import Configs, together
from langchain_gemma_jax.chat.calling.starting import called_together, clock_of
from langchain_gemma_jax.routing.route import AUTO, Sizes, as_route


class ChatGemmaJax(BaseChatModel):
    """Gemma as a chat model, run by JAX inside this process.

        llm = ChatGemmaJax()  # a small embedded model
        llm = ChatGemmaJax(model="google/gemma-3-1b-it", max_tokens=256)
        llm.invoke("What is the capital of France?").text

    Making one is nearly free. The model is loaded when it is first used, once per process for any number of these
    objects, threads and event loops. Every setting below can also be given with a call:
    ``llm.invoke("Hello", temperature=0, model="./my-gemma")``. Arguments that mean nothing here are named in an
    ``UnknownOptionWarning``.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    model: str = Field(default_factory=str)  # for type checkers: __init__ always says which
    """An embedded model's name, a folder, a GGUF file, an id on the Hub (":Q8_0" for that file of it), "ollama:..." or
    "torchax:...". Where none is named, what GEMMA_JAX_MODEL says, or "sprout-m". "auto", or a size: see ``route``."""

    temperature: float | None = None
    """From 0 to 100. 0 takes the most likely token, 1 draws from the model's own distribution. None, here and in the
    settings of sampling that follow: what the checkpoint's authors recommend in its ``generation_config.json``."""
    top_k: int | None = None
    """Draw from this many of the most likely tokens only. 0: from all of them."""
    top_p: float | None = None
    """Above 0, up to 1. Draw from the fewest tokens that have this probability together."""
    min_p: float | None = None
    """From 0 to below 1. Leave out tokens that are less likely than this share of the most likely one's probability."""
    repetition_penalty: float | None = None
    """Above 0, up to 100. More than 1 discourages tokens that the prompt or the answer has."""
    presence_penalty: float | None = None
    """From -100 to 100. Subtracted from the scores of tokens that the answer has."""
    frequency_penalty: float | None = None
    """From -100 to 100. Subtracted from a token's score once for each time that the answer has it."""
    logit_bias: dict[int, float] | None = None
    """Added to the scores of these token ids: from -100 to 100, where -100 bans the token."""
    seed: int | None = None
    """A number with which the same conversation and settings give the same answer. None: a new one each time."""
    stop: list[str] | None = None
    """Texts that end the answer and are not part of it, up to 64. They cut no call, and no object held to a schema."""
    max_tokens: int | None = None
    """The most tokens, thoughts too. What it cuts off is an invalid call or ``CutOffError``. None: until it is full."""
    logprobs: bool | None = None
    """Report each token's log-probability in ``response_metadata["logprobs"]``, in OpenAI's form."""
    top_logprobs: int | None = None
    """From 0 to 20. With ``logprobs=True``: report so many of the most likely tokens at each place too."""

    thinking: bool = False
    """Let the model think before it answers, if it can: Gemma 4. Thoughts are content blocks of type "reasoning"."""
    strict: bool | None = None
    """For tools and structured output that do not say so themselves: what a schema asks and no grammar can promise is
    an error (True) or left out (False). None: of tools it is checked when a call is there, elsewhere it is an error."""
    max_soft_tokens: int | None = None
    """The most tokens that an image becomes, where the model lets it be chosen: Gemma 4. None: as its files say."""
    pan_and_scan: bool | dict[str, int | float] = False
    """True shows Gemma 3 pieces of long images too; a dictionary does so with limits of its own. See docs/images.md."""
    media_folders: list[str] | None = None
    """Folders whose files messages may name: {"type": "image", "path": ...}. None: of no file. See docs/images.md."""
    allow_urls: bool = False
    """Fetch http and https links to images, sounds and documents, from public addresses alone."""
    parallel_tool_calls: bool = True
    """Let the model call several tools at once. False ends its answer after the first call."""
    timeout: float | None = None
    """Seconds until ``DeadlineError``, from the call on, for all of it: loading and escalation too. None: no limit."""
    max_context: int | None = None
    """Tokens of prompt and answer, from 2; also ``n_ctx``. Longer prompts are refused. None: what the model allows."""
    route: Sizes | None = None
    """For ``model="auto"``: the models to choose from, smallest first, and how. ``Route(light=..., heavy=...)``."""
    keep_alive: float | None = None
    """Seconds that the model stays in memory when nobody uses it. None: until the memory is needed for another one."""
    scope: str = ""
    """A tenant's name. Conversations of different scopes share nothing, not even how long something takes."""
    app: str = ""
    """The name of the application that asks: reports, metrics and guards count by it. It separates nothing."""
    session: str | None = None
    """The conversation's name, for routers in front of servers. None: one is made of its thread, or its beginning."""
    guards: str | dict[str, str] | None = None
    """The policy of guards that a call trips: "off", "warn", "raise" or "callback", for all or by name."""
    dialect: str | None = None
    """The chat format: "gemma", "function_gemma" or "gemma4". None: the one that the checkpoint was trained in."""
    dtype: str | None = None
    """The weights' dtype: "bfloat16", "float32" or "float16". None: the checkpoint's own."""
    weights: str | None = None
    """The storage of a dense checkpoint's matrices: "int8" or "int4". None: as they are in its files."""
    activations: str | None = None
    """The activations for packed matrices: "float32" or "int8". None: "int8" where the package's kernels do it."""
    devices: int | str | None = None
    """The number of devices that the model is divided among, or "auto": the fewest on which it fits. None: one."""
    replicas: int | str | None = None
    """The number of copies of the model in memory, each on devices of its own, or "auto". None: one."""
    trust_remote_code: bool | None = None
    """Allow Python files in the folder of a model "torchax:..." to be run. Unless this is True, they are not."""
    revision: str | None = None
    """A branch, tag or commit of the model on the Hub. None: its main branch."""
    token: SecretStr | None = None
    """A token of the Hugging Face Hub, told to it alone. None: that of HF_TOKEN, or of ``hf auth login``."""
    server: str | None = None
    """The engine that answers: "auto", this user's ``gemma-jax serve``; "unix:/path/to/a.sock";
    "http://127.0.0.1:8000"; "off", this process. None: as GEMMA_JAX_SERVER says, or this process. See docs/serve.md."""
    api_key: SecretStr | None = None
    """The key that the server wants, if it wants one. None: that of GEMMA_JAX_API_KEY."""
    streaming: bool = False
    """Stream inside ``invoke`` too, for callbacks that watch tokens."""

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
        """Answer all of them at once: they share the steps of the engine. See ``Runnable.batch``."""
        with called_together(self):
            return super().batch(inputs, together(config), **kwargs)

    async def abatch(self, inputs: list[LanguageModelInput], config: Configs = None, **kwargs: Any) -> list[AIMessage]:
        """Answer all of them at once: they share the steps of the engine. See ``Runnable.abatch``."""
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
            tool_choice: "auto", by default, leaves it to the model; "any" or "required" has it call one, a tool's name
                that one, and "none" forbids it. Arguments are valid against their schemas in any case.
            strict: what happens to what a schema asks and a grammar cannot promise. True: it is an error. False: it is
                left out. None: there is a warning, and a call that is not as it asks is an ``invalid_tool_call``.
            kwargs: settings of this model, and ``response_format``: what an answer that is no call has to be.

        Raises:
            InputError: a tool is of no form that is known, or the choice is not possible.
            SchemaError: a schema is malformed, or is strict and asks what a grammar cannot promise. It says where.
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
        """Return the model with answers that are objects of a schema, whatever the model is like.

            class City(BaseModel):
                name: str
                inhabitants: int = Field(ge=0)

            city = llm.with_structured_output(City).invoke("Paris has 2,100,000 inhabitants.")

        Args:
            schema: a class of pydantic (2 or 1), a TypedDict, a dataclass, an Enum, or a JSON schema. Classes of
                pydantic and dataclasses give their objects, an Enum its member, the others dictionaries.
            method: "json_schema" tells the model the schema and holds it to it. "function_calling" has it call a tool
                with that schema. "json_mode" tells it nothing, so the prompt has to, and may go without a schema.
            include_raw: give ``{"raw": the message, "parsed": the object or None, "parsing_error": ...}``.
            strict: False leaves out what a grammar cannot promise, instead of an error.
            kwargs: settings of this model.

        Raises:
            InputError: the schema is of no form that is known, or the method is none.
            SchemaError: the schema is malformed, or asks what a grammar cannot promise. It says where.
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
            model = self.bind_tools(formed, tool_choice=tool, ls_structured_output_format=asked.told, **kwargs)
        else:
            check_answer(checked_format(asked.response_format))
            model = self.bind(response_format=asked.response_format, ls_structured_output_format=asked.told, **kwargs)
        reader = asked.reader(tool)
        return with_raw(model, reader) if include_raw else model | reader

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
        self, names: Sequence[str] = SETTINGS, refuse: Callable[[], None] = refuse_at_the_end
    ) -> dict[str, Any]:
        refuse()  # before any import. Both are parameters: a module's globals are gone at the interpreter's end
        return {name: getattr(self, name) for name in names}


def _message_id(run: BaseRunManager) -> str:
    return f"{LC_ID_PREFIX}-{run.run_id}"
