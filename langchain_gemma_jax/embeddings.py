"""``GemmaJaxEmbeddings``: a LangChain embedding model that runs EmbeddingGemma in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from pydantic import ConfigDict, Field

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.ancestry import refuse_at_the_end
from langchain_gemma_jax.chat.asking.options import constructor_arguments, renamed
from langchain_gemma_jax.chat.calling.embedding_calls import AskedVectors, vectors_of
from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.settings.table import ModelSettings, how_to_load

DEFAULT = "google/embeddinggemma-300m"


class GemmaJaxEmbeddings(ModelSettings, Embeddings):
    """EmbeddingGemma as a LangChain embedding model: texts to vectors, in the engine that also runs chat models.

        embeddings = GemmaJaxEmbeddings()
        store = InMemoryVectorStore.from_texts(["The pool opens at seven."], embeddings)
        store.similarity_search("When can I swim?")

    Questions and documents are read after the prompts that the model was trained with. Vectors have length 1.

    Raises:
        InputError: a setting is not possible. The message says which values are.
    """

    model_config = ConfigDict(defer_build=False)

    model: str = Field(default_factory=str)  # the default is for type checkers: __init__ always sets it
    """A folder in the layout of Sentence Transformers, or a model's id on the Hub. The default is EmbeddingGemma's."""
    query_prompt: str | None = None
    """Text to put before a question. None: the text in the model's files; "": no text."""
    document_prompt: str | None = None
    """Text to put before a document. None: the text in the model's files; "": no text."""
    dimensions: int | None = None
    """The number of dimensions of a vector: its first ones, scaled to length 1 again. EmbeddingGemma was trained for
    768, 512, 256 and 128. None: all."""
    truncate: bool = False
    """Cut texts that are too long. Otherwise they are refused with ``ContextLengthError``."""

    if not TYPE_CHECKING:  # type checkers derive the arguments from the fields

        def __init__(self, **given: Any) -> None:
            found = renamed(given)
            if found.get("model") is None:
                found["model"] = DEFAULT
            _check(found)
            super().__init__(**constructor_arguments(found, set(type(self).model_fields), type(self).__name__))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents.

        Raises:
            ContextLengthError: a text is too long. For other errors see ``engine().load``.
        """
        return self._vectors(texts, "document")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question.

        Raises:
            ContextLengthError: it is too long. For other errors see ``engine().load``.
        """
        return self._vectors([text], "query")[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents, without blocking the event loop."""
        return await self._avectors(texts, "document")

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of a question, without blocking the event loop."""
        return (await self._avectors([text], "query"))[0]

    async def _avectors(self, texts: Sequence[str], what: str) -> list[list[float]]:
        return await in_thread(self._vectors, texts, what)

    def _vectors(
        self, texts: Sequence[str], what: str, refuse: Callable[[], None] = refuse_at_the_end
    ) -> list[list[float]]:
        refuse()  # a parameter, since a module's globals are gone at the interpreter's end
        prompt = self.query_prompt if what == "query" else self.document_prompt
        asked = AskedVectors(
            model=self.model,
            how=how_to_load(self),
            what=what,
            prompt=prompt,
            dimensions=self.dimensions,
            truncate=self.truncate,
            keep_alive=self.keep_alive,
        )
        return vectors_of(texts, asked, Clock(self.timeout)).vectors


def _check(given: Mapping[str, object]) -> None:
    """Check the settings that other models do not have, or that have other values here.

    Raises:
        InputError: a setting is not possible.
    """
    size = given.get("dimensions")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InputError(f"dimensions: expected how many numbers a vector has, from 1, or None; found {size!r}.")
    if given.get("dtype") == "float16":
        raise InputError(
            'dtype: expected "bfloat16" or "float32": EmbeddingGemma\'s activations pass what float16 holds.'
        )
    for name in ("query_prompt", "document_prompt"):
        if not isinstance(given.get(name), str | None):
            raise InputError(f"{name}: expected a text, or None for the model's own; found {given[name]!r}.")
    if not isinstance(given.get("truncate", False), bool):
        raise InputError(f"truncate: expected True or False; found {given['truncate']!r}.")
