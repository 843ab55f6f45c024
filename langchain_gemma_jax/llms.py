"""``GemmaJaxLLM``: Gemma as a LangChain model that goes on with texts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseLLM
from langchain_core.language_models.base import LangSmithParams
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from pydantic import ConfigDict, SecretStr

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.ancestry import refuse_at_the_end
from langchain_gemma_jax.chat.asking.options import Options, constructor_arguments, options, renamed
from langchain_gemma_jax.chat.calling.answerer import THIS_PROCESS, Answerer
from langchain_gemma_jax.chat.calling.continued import Continuation, TextEnd
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.provider import PROVIDER
from langchain_gemma_jax.settings.table import SETTINGS, SamplingSettings, TextSettings


class GemmaJaxLLM(TextSettings, SamplingSettings, BaseLLM):
    r"""Gemma as a model that continues a text: for base models, and CodeGemma, which also fills gaps.

        llm = GemmaJaxLLM(model="google/gemma-3-1b-pt", max_tokens=64)
        llm.invoke("The capital of France is")

        GemmaJaxLLM(model="google/codegemma-2b").invoke("def add(a, b):\n    return ", suffix="\n")

    There is no chat format and there are no turns: the text is read as it is, after the token that begins a text. For
    models that were tuned for conversations, use ``ChatGemmaJax``. Settings can be given with a call too.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """

    model_config = ConfigDict(defer_build=False)

    suffix: str | None = None
    """The text after the gap, which the model fills. For models that were trained for it, such as CodeGemma."""
    server: str | None = None
    """The engine that answers, as for ``ChatGemmaJax``. See docs/serve.md."""
    api_key: SecretStr | None = None
    """The server's API key. None: that of GEMMA_JAX_API_KEY, if it is set."""

    if not TYPE_CHECKING:  # type checkers know the fields as arguments, and are left to it

        def __init__(self, **given: Any) -> None:
            super().__init__(**constructor_arguments(given, set(type(self).model_fields), type(self).__name__))
            self._answerer()  # refuses an address that is malformed

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: the model holds plain values only."""
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The environment variable of each secret, for loading a model that was serialized."""
        return {"token": "HF_TOKEN", "api_key": "GEMMA_JAX_API_KEY"}

    @property
    def _llm_type(self) -> str:
        return "gemma-jax-llm"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {name: value for name, value in {**self._stored(), "server": self.server}.items() if value is not None}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = PROVIDER
        params["ls_model_name"] = str(renamed(kwargs).get("model") or self.model)
        return params

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> LLMResult:
        asked, clock, suffix = self._asked(stop, kwargs)
        return _result(self._answerer().continued(prompts, suffix, asked, clock), asked)

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> LLMResult:
        asked, clock, suffix = self._asked(stop, kwargs)
        return _result(await self._answerer().acontinued(prompts, suffix, asked, clock), asked)

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        asked, clock, suffix = self._asked(stop, kwargs)
        for piece in self._answerer().continuing(prompt, suffix, asked, clock):
            chunk = _chunk(piece, asked)
            if run_manager is not None and isinstance(piece, str):
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        asked, clock, suffix = self._asked(stop, kwargs)
        coming = self._answerer().acontinuing(prompt, suffix, asked, clock)
        async with aclosing(coming) as pieces:
            async for piece in pieces:
                chunk = _chunk(piece, asked)
                if run_manager is not None and isinstance(piece, str):
                    await run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk

    def get_token_ids(self, text: str) -> list[int]:
        """Return a text's tokens."""
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        return self._answerer().token_ids(text, self._asked(None, {})[0])

    def _answerer(self) -> Answerer:
        """Return the engine that answers."""
        if self.server is None:
            return THIS_PROCESS
        from langchain_gemma_jax.client.remote_model import answerer_at

        return answerer_at(self.server, self.api_key)

    def _stored(
        self, names: Iterable[str] = SETTINGS, refuse: Callable[[], None] = refuse_at_the_end
    ) -> dict[str, Any]:
        refuse()  # before any import. Both are parameters: a module's globals are gone at the interpreter's end
        return {name: getattr(self, name, None) for name in names}

    def _asked(self, stop: list[str] | None, given: dict[str, Any]) -> tuple[Options, Clock, str | None]:
        suffix = given.pop("suffix", None)
        asked = options({**self._stored(), "token": self.token}, stop, given)
        return asked, Clock(asked.timeout), self.suffix if suffix is None else suffix


def _result(continuations: list[Continuation], asked: Options) -> LLMResult:
    read, written = (
        sum(each.end.prompt_tokens for each in continuations),
        sum(each.end.generated_tokens for each in continuations),
    )
    return LLMResult(
        generations=[
            [Generation(text=each.text, generation_info=_end_metadata(each.end, asked))] for each in continuations
        ],
        llm_output={
            "model_name": asked.model,
            "token_usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        },
    )


def _chunk(piece: str | TextEnd, asked: Options) -> GenerationChunk:
    if isinstance(piece, str):
        return GenerationChunk(text=piece)
    return GenerationChunk(text="", generation_info=_end_metadata(piece, asked))


def _end_metadata(end: TextEnd, asked: Options) -> dict[str, Any]:
    metadata = {"model_name": asked.model, "model_provider": PROVIDER, "finish_reason": end.finish_reason}
    return metadata | ({} if end.stop is None else {"stop": end.stop})
