"""Texts told apart by a model of transformers that has labels: in batches, and lengths of a few sizes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import tokenizers

from langchain_gemma_jax.errors import ClosedError, InputError, UnsupportedModelError
from langchain_gemma_jax.models.placement import placement_of
from langchain_gemma_jax.models.sources.find_files import find_files
from langchain_gemma_jax.models.torchax.asked import PREFIX
from langchain_gemma_jax.models.torchax.checks import checked_folder
from langchain_gemma_jax.models.torchax.libraries import TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.loading import moved, read_by_transformers
from langchain_gemma_jax.models.torchax.meta_module import configuration, quiet
from langchain_gemma_jax.models.torchax.versions import check_versions

LENGTHS = (16, 32, 64, 128, 256, 512)  # tokens of a text, with padding: a program for each that is needed
ROWS = 8  # texts in a step


class TextClassifier:
    """A model that gives each text one of its labels.

    with TextClassifier("torchax:./my-sentiments") as model:
        labels = model.classify(["I like it.", "I do not."])

    There are as many programs as lengths of ``LENGTHS`` that the texts have; ``compiles`` counts them.
    """

    def __init__(
        self, source: str | os.PathLike[str], *, revision: str | None = None, token: str | None = None
    ) -> None:
        check_versions()
        named = source.removeprefix(PREFIX) if isinstance(source, str) else source
        found = find_files(named, revision=revision, token=token, progress=None, stop=None)
        raw = checked_folder(found.path)
        self.name = found.name
        self._libraries = libraries()
        kind = configuration(self._libraries, raw)
        self.labels: tuple[str, ...] = tuple(str(kind.id2label[number]) for number in sorted(kind.id2label))
        self._pad, self._most = int(kind.pad_token_id or 0), int(kind.max_position_embeddings)
        self._module = _meta(self._libraries, raw)
        self._tokenizer = tokenizers.Tokenizer.from_file(str(found.path / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        with self._libraries.alone():
            whole = read_by_transformers(
                self._libraries,
                found.path,
                "float32",
                "AutoModelForSequenceClassification",
                {"attn_implementation": "eager"},
            )
            self._params: dict[str, Any] = moved(whole, placement_of(None))
        self._scores = jax.jit(partial(_scores, self._libraries, self._module))
        self._closed = False

    @property
    def compiles(self) -> int:
        """How many programs were made."""
        return int(self._scores._cache_size())  # noqa: SLF001  JAX has no public name for it

    def classify(self, texts: Sequence[str]) -> list[str]:
        """Return the most likely label of each text.

        Raises:
            InputError: the texts are no list of strings, or one is longer than the model reads.
            ClosedError: the model was closed.
        """
        return [self.labels[number] for number in self.scores(texts).argmax(axis=1)]

    def scores(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """Return each label's score for each text ``[text, label]``. See ``classify``."""
        if self._closed:
            raise ClosedError(f"The classifier {self.name!r} was closed. Make it again.")
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts: expected a list of strings.")
        ids = [each.ids for each in self._tokenizer.encode_batch(list(texts))]
        places: dict[int, list[int]] = {}
        for number, each in enumerate(ids):
            places.setdefault(self._length(number, len(each)), []).append(number)
        out = np.zeros((len(ids), len(self.labels)), np.float32)
        for length, numbers in sorted(places.items()):
            for start in range(0, len(numbers), ROWS):
                batch = numbers[start : start + ROWS]
                tokens = np.full((ROWS, length), self._pad, np.int32)
                seen = np.zeros((ROWS, length), np.int32)
                seen[:, 0] = 1  # of rows that stand for no text: a mask of nothing has no numbers
                for row, number in enumerate(batch):
                    tokens[row, : len(ids[number])], seen[row, : len(ids[number])] = ids[number], 1
                found = self._scores(self._params, jnp.asarray(tokens), jnp.asarray(seen))
                out[batch] = np.asarray(found)[: len(batch)]
        return out

    def close(self) -> None:
        """Free the weights."""
        self._closed = True
        for array in self._params.values():
            array.delete()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _length(self, number: int, tokens: int) -> int:
        most = min(self._most, LENGTHS[-1])
        if not 0 < tokens <= most:
            raise InputError(f"texts[{number}]: expected 1 to {most} tokens, found {tokens}. Cut it, or take a part.")
        return min(next(length for length in LENGTHS if tokens <= length), self._most)


def _meta(found: TorchLibraries, raw: dict[str, object]) -> Any:
    with found.alone(), found.torch.device("meta"), quiet():
        kind = configuration(found, json.loads(json.dumps(raw)))
        try:
            module = found.transformers.AutoModelForSequenceClassification.from_config(
                kind, dtype=found.torch.float32, attn_implementation="eager"
            )
        except ValueError as error:
            said = " ".join(str(error).split())[:200]
            raise UnsupportedModelError(
                f"transformers has no classifier of the kind {kind.model_type}: {said}"
            ) from error
    return module.eval()


def _scores(found: TorchLibraries, module: Any, params: Any, tokens: jax.Array, seen: jax.Array) -> jax.Array:
    with found.tracing():
        views = found.to_torch((dict(params), tokens, seen))
        asked = {"input_ids": views[1], "attention_mask": views[2]}
        out = found.torch.func.functional_call(module, views[0], (), asked, tie_weights=True).logits
        scores: jax.Array = found.to_jax(out)
    return scores.astype(jnp.float32)


def classify(model: TextClassifier, texts: Sequence[str]) -> list[str]:
    """Return the most likely label of each text. See ``TextClassifier``."""
    return model.classify(texts)
