"""Checks of callers' arguments, made before anything happens, with messages that say what to do."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sized
from numbers import Real
from typing import cast

from langchain_gemma_jax.engine.base.sampling_options import MAX_LOGIT_BIASES, Sampling
from langchain_gemma_jax.errors import ContextLengthError, InputError, UnsupportedModelError


def checked_sampling(sampling: object, vocabulary: int) -> Sampling:
    """Return the sampling options, checked; None gives ``Sampling()``."""
    if sampling is None:
        return Sampling()
    if not isinstance(sampling, Sampling):
        raise InputError(f"sampling: expected Sampling(...) or None, found {sampling!r}.")
    if sampling.logit_bias and (largest := max(sampling.logit_bias)) >= vocabulary:
        raise InputError(f"logit_bias: expected token ids from 0 to {vocabulary - 1}, found {largest}.")
    if sampling.scored and (largest := max(sampling.scored)) >= vocabulary:
        raise InputError(f"scored: expected token ids from 0 to {vocabulary - 1}, found {largest}.")
    if (count := len({*sampling.scored, *sampling.logit_bias})) > MAX_LOGIT_BIASES:
        raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES} with those that are scored, found {count}.")
    return sampling


def checked_prompt(prompt: object, vocabulary: int, context: int) -> array[int]:
    """Return a copy of the token ids, checked. The caller may change its own list afterwards."""
    expected = f"prompt: expected a sequence of token ids from 0 to {vocabulary - 1}"
    if isinstance(prompt, str | bytes | bytearray) or not isinstance(prompt, Iterable) or not isinstance(prompt, Sized):
        raise InputError(f"{expected}, found {type(prompt).__name__}.")
    try:
        length = len(prompt)
        if length >= context:  # checked first, so that a list of millions is not copied
            raise ContextLengthError(length, context - 1)
        kinds = set(map(type, prompt))
        ids = array("q", prompt)
    except (TypeError, OverflowError) as error:
        raise InputError(f"{expected}, found {type(prompt).__name__}: {error}.") from error
    if bool in kinds:  # Python takes them for 0 and 1
        raise InputError(f"{expected}, found True or False among them.")
    check_ids(ids, vocabulary, context)
    return ids


def check_ids(ids: array[int], vocabulary: int, context: int) -> None:
    """Refuse the ids of a prompt that are none of the model's, or too many."""
    if len(ids) >= context:
        raise ContextLengthError(len(ids), context - 1)
    if not ids:
        raise InputError("prompt: expected one token at least, found none. A text begins with bos_id.")
    if min(ids) < 0 or max(ids) >= vocabulary:
        wrong = next(token for token in ids if not 0 <= token < vocabulary)
        raise InputError(f"prompt: expected a sequence of token ids from 0 to {vocabulary - 1}, found {wrong}.")


def check_place(scope: object, system: object, tokens: int) -> None:
    """Refuse a scope that is no string, and a system prompt longer than the prompt."""
    if isinstance(system, bool) or not isinstance(system, int) or not 0 <= system <= tokens:
        raise InputError(f"system: expected how many of the {tokens} tokens it is, found {system!r}.")
    if not isinstance(scope, str):
        raise InputError(f"scope: expected a string, found {scope!r}.")


def no_embedder(name: str) -> UnsupportedModelError:
    """Return the error for a caller that wants vectors of a model that generates text."""
    return UnsupportedModelError(
        f"{name!r} reads texts to go on with them, and makes no vectors of them. Take an embedding model, such as "
        "google/embeddinggemma-300m."
    )


def no_writer(name: str) -> UnsupportedModelError:
    """Return the error for a caller that wants an answer of a model that makes vectors."""
    return UnsupportedModelError(
        f"{name!r} makes vectors of texts, and cannot answer. Use it with GemmaJaxEmbeddings, and take another model "
        "to talk to, such as google/gemma-3-1b-it."
    )


def checked_token_count(count: object) -> int:
    """Return a number of tokens, checked."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"max_context: expected a whole number of tokens, from 1, or None, found {count!r}.")
    return count


def checked_timeout(timeout: object) -> float:
    """Return a time limit in seconds, checked."""
    # NumPy registers its numbers as Real, which has no order for a type checker.
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 <= cast("float", timeout) < 2**31:
        raise InputError(f"timeout: expected seconds from 0 to 2**31, or None, found {timeout!r}.")
    return float(timeout)
