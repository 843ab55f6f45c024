"""``GemmaJaxLLM``: Gemma as a LangChain model that goes on with texts, inside this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseLLM
from langchain_core.language_models.base import LangSmithParams
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from pydantic import ConfigDict

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.ancestry import refuse_at_the_end
from langchain_gemma_jax.chat.asking.options import Options, constructor_arguments, options, renamed
from langchain_gemma_jax.chat.calling.raw_text import begin_text
from langchain_gemma_jax.chat.calling.starting import abegin, begin
from langchain_gemma_jax.chat.calling.token_counting import token_ids
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.request import Completion, Piece
from langchain_gemma_jax.provider import PROVIDER
from langchain_gemma_jax.settings.table import SETTINGS, SamplingSettings, TextSettings


class GemmaJaxLLM(TextSettings, SamplingSettings, BaseLLM):
    r"""Gemma as a model that goes on with a text: base models, and CodeGemma between two texts.

        llm = GemmaJaxLLM(model="google/gemma-3-1b-pt", max_tokens=64)
        llm.invoke("The capital of France is")

        GemmaJaxLLM(model="google/codegemma-2b").invoke("def add(a, b):\n    return ", suffix="\n")

    There is no chat format and there are no turns: the text is read as it is, behind the mark that begins a text. For
    models that were tuned for conversations, use ``ChatGemmaJax``. Settings can be given with a call too.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """

    model_config = ConfigDict(defer_build=False)

    suffix: str | None = None
    """The text that follows: the model writes what is between it and the prompt. For models taught so, as CodeGemma."""

    if not TYPE_CHECKING:  # type checkers know the fields as arguments, and are left to it

        def __init__(self, **given: Any) -> None:
            super().__init__(**constructor_arguments(given, set(type(self).model_fields), type(self).__name__))

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: the model holds plain values only."""
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The environment variable of each secret, for loading a model that was serialised."""
        return {"token": "HF_TOKEN"}

    @property
    def _llm_type(self) -> str:
        return "gemma-jax-llm"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {name: value for name, value in self._stored().items() if value is not None}

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
        running = [begin(partial(begin_text, each, suffix, asked, clock), clock) for each in prompts]
        try:
            return _result([each.result() for each in running], asked)
        finally:
            for each in running:
                each.cancel()  # if the waiting is interrupted

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> LLMResult:
        asked, clock, suffix = self._asked(stop, kwargs)
        running = []
        try:
            for prompt in prompts:  # one by one, so that those that have begun are cancelled if another one fails
                one = await abegin(partial(begin_text, prompt, suffix, asked, clock), clock)
                running.append(one)
            return _result([await one for one in running], asked)
        finally:
            for one in running:
                one.cancel()

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        asked, clock, suffix = self._asked(stop, kwargs)
        generation = begin(partial(begin_text, prompt, suffix, asked, clock), clock)
        for piece in generation:
            if run_manager is not None:
                run_manager.on_llm_new_token(piece.text, chunk=GenerationChunk(text=piece.text))
            yield GenerationChunk(text=piece.text)
        yield GenerationChunk(text="", generation_info=_told(generation.result(), asked))

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        asked, clock, suffix = self._asked(stop, kwargs)
        generation = await abegin(partial(begin_text, prompt, suffix, asked, clock), clock)
        async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(generation))) as pieces:
            async for piece in pieces:
                if run_manager is not None:
                    await run_manager.on_llm_new_token(piece.text, chunk=GenerationChunk(text=piece.text))
                yield GenerationChunk(text=piece.text)
        yield GenerationChunk(text="", generation_info=_told(await generation, asked))

    def get_token_ids(self, text: str) -> list[int]:
        """Return a text's tokens."""
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        return token_ids(text, self._asked(None, {})[0])

    def _stored(
        self, names: Iterable[str] = SETTINGS, refuse: Callable[[], None] = refuse_at_the_end
    ) -> dict[str, Any]:
        refuse()  # before any import. Both are parameters: a module's globals are gone at the interpreter's end
        return {name: getattr(self, name, None) for name in names}

    def _asked(self, stop: list[str] | None, given: dict[str, Any]) -> tuple[Options, Clock, str | None]:
        suffix = given.pop("suffix", None)
        asked = options({**self._stored(), "token": self.token}, stop, given)
        return asked, Clock(asked.timeout), self.suffix if suffix is None else suffix


def _result(found: list[Completion], asked: Options) -> LLMResult:
    usage = [(done.prompt_tokens, done.generated_tokens) for done in found]
    read, written = (sum(counts) for counts in zip(*usage, strict=True)) if usage else (0, 0)
    return LLMResult(
        generations=[[Generation(text=done.text, generation_info=_told(done, asked))] for done in found],
        llm_output={
            "model_name": asked.model,
            "token_usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        },
    )


def _told(done: Completion, asked: Options) -> dict[str, Any]:
    told = {"model_name": asked.model, "model_provider": PROVIDER, "finish_reason": str(done.finish_reason)}
    return told | ({"stop": done.stop} if isinstance(done.stop, str) else {})
