"""A model's side of grammars: its vocabulary as llguidance wants it, and requests' places in their grammars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from langchain_gemma_jax.engine.base.sampling_options import MAX_LOGIT_BIASES, Sampling
from langchain_gemma_jax.engine.requests.request_constraint import FreeText, RequestConstraint, Trust
from langchain_gemma_jax.errors import InputError, SchemaError
from langchain_gemma_jax.grammar.lark import lark
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.grammar.reading import limits
from langchain_gemma_jax.grammar.vocabulary import GrammarTokenizer, Lexicon

if TYPE_CHECKING:
    from llguidance import LLMatcher


LONGEST = 150_000  # characters of a grammar


class ModelGrammars:
    """What the requests of one model are held to. Any thread may come here.

    A grammar is compiled for each request, by the caller's thread: that takes milliseconds. What llguidance finds out
    about a grammar while it is followed goes with the request, so it never adds up, and no request is told by its time
    what another one was held to.
    """

    def __init__(self, tokenizer: GrammarTokenizer, vocab_size: int) -> None:
        self.lexicon = Lexicon(tokenizer, vocab_size)
        self.trust = Trust()

    def prepare(self, grammar: Grammar | None = None) -> None:
        """Make what takes long for any grammar, and see that this one can be compiled."""
        self.lexicon.matching()
        if grammar is not None and grammar.root is not None:
            self._compiled(grammar)

    def begin(self, sampling: Sampling, stops: frozenset[int]) -> tuple[RequestConstraint | None, tuple[int, ...]]:
        """What a request is held to, if anything, and the tokens that never come.

        Raises:
            InputError: see ``of``; or there is no room beside the biases.
        """
        if sampling.grammar is None:
            return None, ()
        banned = self.lexicon.control_ids(sampling.grammar.banned)
        if (count := len({*sampling.logit_bias, *sampling.scored, *banned})) > MAX_LOGIT_BIASES:
            raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES} with the grammar's own, found {count}.")
        return self.of(sampling.grammar, stops, forces=not sampling.logprobs), tuple(banned)

    def of(self, grammar: Grammar, stops: frozenset[int], *, forces: bool) -> RequestConstraint | None:
        """What a text is held to; None if it is free.

        Args:
            grammar: what it asks for.
            stops: the tokens that end it.
            forces: tokens to which there is no alternative are appended without asking the model.

        Raises:
            SchemaError: llguidance does not take the grammar, because it is too large or too ambiguous.
            UnsupportedModelError: the vocabulary lacks one of its control tokens.
        """
        if grammar.root is None:
            return None
        opener = None if grammar.opener is None else self.lexicon.control_ids([grammar.opener])[0]
        free = None if grammar.free_until is None else FreeText(grammar.free_until)
        own = frozenset(token for token in stops if self.lexicon.tokenizer.control_name(token) is not None)
        return RequestConstraint(self._compiled(grammar), self.lexicon, own, self.trust, opener, free, forces=forces)

    def _compiled(self, grammar: Grammar) -> LLMatcher:
        from llguidance import LLMatcher

        text = lark(grammar, _Ids(self.lexicon))
        if len(text) <= LONGEST:
            written = LLMatcher.grammar_from_lark(text)
            matcher = LLMatcher(self.lexicon.matching(), written, log_level=0, limits=limits())
            if not matcher.is_error():
                return matcher
        raise SchemaError("#", "it is too large or too ambiguous to be compiled")


class _Ids(Mapping[str, int]):
    """Control tokens by name, as a mapping that tells which one is missing."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def __getitem__(self, name: str) -> int:
        return self._lexicon.control_ids([name])[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lexicon.tokenizer.control_tokens)

    def __len__(self) -> int:
        return len(self._lexicon.tokenizer.control_tokens)
