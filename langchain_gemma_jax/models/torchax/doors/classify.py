"""Classification of texts by a model of transformers with labels: in batches, padded to a few lengths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import tokenizers

from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.find import find
from langchain_gemma_jax.models.torchax.asked import PREFIX
from langchain_gemma_jax.models.torchax.checks import checked_folder
from langchain_gemma_jax.models.torchax.doors.module_function import CompiledModule
from langchain_gemma_jax.models.torchax.libraries import libraries
from langchain_gemma_jax.models.torchax.meta_module import configuration, fix_lengths, is_in_transformers, most_context
from langchain_gemma_jax.models.torchax.reading import read_by_transformers
from langchain_gemma_jax.models.torchax.remote_code import code_in
from langchain_gemma_jax.models.torchax.versions import check_versions

LENGTHS = (16, 32, 64, 128, 256, 512)  # tokens of a text, with padding: a program for each that is needed
ROWS = 8  # texts in a step


class TextClassifier:
    """A model that gives each text one of its labels.

    with TextClassifier("torchax:./my-sentiments") as model:
        labels = classify(model, ["I like it.", "I do not."])

    There are as many programs as lengths of ``LENGTHS`` that the texts have; ``compiles`` counts them.
    """

    def __init__(
        self, source: str | os.PathLike[str], *, revision: str | None = None, token: str | None = None
    ) -> None:
        """Load a model from a folder, or by its id on the Hub, as ``load`` does.

        Raises:
            InstallationError: torch, transformers or torchax is missing, or their releases do not fit together.
            CheckpointError: the model cannot be read. UnsupportedModelError: it has fewer than two labels.
        """
        check_versions()
        named = source.removeprefix(PREFIX) if isinstance(source, str) else source
        files = find(named, HowToLoad(revision=revision, token=token))
        raw = checked_folder(files.path)
        self.name, shared = files.name, libraries()
        code_in(files.path, raw, known=is_in_transformers(raw.get("model_type")), trusted=False)
        kind = configuration(shared, raw)
        self.labels: tuple[str, ...] = tuple(str(kind.id2label[number]) for number in sorted(kind.id2label))
        if len(self.labels) < 2:
            raise UnsupportedModelError(f"{self.name!r}: expected two labels or more, found {len(self.labels)}.")
        self._pad, self._most = int(kind.pad_token_id or 0), min(most_context(kind), LENGTHS[-1])
        self._tokenizer = tokenizers.Tokenizer.from_file(str(files.path / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        with shared.alone():
            how = {"attn_implementation": "eager", "trust_remote_code": False}
            module = read_by_transformers(shared, files.path, "float32", "AutoModelForSequenceClassification", how)
        fix_lengths(module)
        module.config.use_cache = False  # a text is read once
        self._module = CompiledModule(module)

    @property
    def compiles(self) -> int:
        """Number of compiled programs."""
        return self._module.compiles

    def scores(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """Return each label's score for each text ``[text, label]``.

        Raises:
            InputError: the texts are not a list of strings, or one has no tokens or more than the model can read.
            ClosedError: the model was closed.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts: expected a list of strings.")
        ids = [each.ids for each in self._tokenizer.encode_batch(list(texts))]
        of_length: dict[int, list[int]] = {}
        for number, each in enumerate(ids):
            of_length.setdefault(self._length(number, len(each)), []).append(number)
        out = np.zeros((len(ids), len(self.labels)), np.float32)
        waiting = []  # the device works on one batch while the next is made ready
        for length, numbers in sorted(of_length.items()):
            for start in range(0, len(numbers), ROWS):
                batch = numbers[start : start + ROWS]
                waiting.append((batch, self._step(length, [ids[number] for number in batch])))
        for batch, scores in waiting:
            out[batch] = np.asarray(scores, np.float32)[: len(batch)]
        return out

    def close(self) -> None:
        """Free the weights. May be called twice."""
        self._module.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _length(self, number: int, tokens: int) -> int:
        if not 0 < tokens <= self._most:
            raise InputError(f"texts[{number}]: expected 1 to {self._most} tokens, found {tokens}. Take a part of it.")
        return min(next(length for length in LENGTHS if tokens <= length), self._most)

    def _step(self, length: int, ids: Sequence[Sequence[int]]) -> Any:
        tokens = np.full((ROWS, length), self._pad, np.int32)
        seen = np.zeros((ROWS, length), np.int32)
        seen[:, 0] = 1  # for rows without a text: softmax over an empty mask would give NaN
        for row, each in enumerate(ids):
            tokens[row, : len(each)], seen[row, : len(each)] = each, 1
        return self._module(input_ids=tokens, attention_mask=seen).logits


def classify(model: TextClassifier, texts: Sequence[str]) -> list[str]:
    """Return the most likely label of each text, in the order of the texts. Raises what ``TextClassifier.scores`` does.

    labels = classify(model, ["I like it.", "I do not."])
    """
    return [model.labels[number] for number in model.scores(texts).argmax(axis=1)]
