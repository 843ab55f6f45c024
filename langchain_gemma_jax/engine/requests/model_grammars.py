"""``ModelGrammars``: a model's vocabulary for llguidance, and the constraints that it makes for requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from langchain_gemma_jax.engine.base.sampling_options import MAX_LOGIT_BIASES, Sampling
from langchain_gemma_jax.engine.requests.request_constraint import FreeText, LostOpener, RequestConstraint, Trust
from langchain_gemma_jax.errors import InputError, SchemaError
from langchain_gemma_jax.grammar.lark import lark
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.grammar.reading import limits
from langchain_gemma_jax.grammar.vocabulary import GrammarTokenizer, Lexicon

if TYPE_CHECKING:
    from llguidance import LLMatcher


LONGEST = 150_000  # characters of a grammar


class ModelGrammars:
    """The grammars of one model's requests. Any thread may use it.

    A grammar is compiled for each request, in the caller's thread, which takes milliseconds. llguidance's state for a
    grammar is dropped with the request. So it never adds up, and the time of a request reveals nothing about another's
    grammar.
    """

    def __init__(self, tokenizer: GrammarTokenizer, vocab_size: int) -> None:
        self.lexicon = Lexicon(tokenizer, vocab_size)
        self.trust = Trust()

    def prepare(self, grammar: Grammar | None = None) -> None:
        """Prepare the vocabulary, which takes long and serves all grammars, and check that this one compiles."""
        self.lexicon.matching()
        if grammar is not None and grammar.root is not None:
            self._compiled(grammar)

    def begin(self, sampling: Sampling, stops: frozenset[int]) -> tuple[RequestConstraint | None, tuple[int, ...]]:
        """Return a request's constraint, or None, and the tokens that are banned.

        Raises:
            InputError: see ``of``; or there are too many biases with the grammar's own.
        """
        if sampling.grammar is None:
            return None, ()
        banned = self.lexicon.control_ids(sampling.grammar.banned)
        if (count := len({*sampling.logit_bias, *sampling.scored, *banned})) > MAX_LOGIT_BIASES:
            raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES} with the grammar's own, found {count}.")
        return self.of(sampling.grammar, stops, forces=not sampling.logprobs), tuple(banned)

    def of(self, grammar: Grammar, stops: frozenset[int], *, forces: bool) -> RequestConstraint | None:
        """Return the constraint of a grammar; None if the text is free.

        Args:
            grammar: the grammar.
            stops: the tokens that end the text.
            forces: append tokens without an alternative, without running the model.

        Raises:
            SchemaError: llguidance refuses the grammar, because it is too large or too ambiguous.
            UnsupportedModelError: the vocabulary lacks one of its control tokens.
        """
        if grammar.root is None:
            return None
        opener = None if grammar.opener is None else self.lexicon.control_ids([grammar.opener])[0]
        free = None if grammar.free_until is None else FreeText(grammar.free_until)
        lost = None if grammar.unopened is None else LostOpener(grammar.unopened)
        own = frozenset(token for token in stops if self.lexicon.tokenizer.control_name(token) is not None)
        return RequestConstraint(
            self._compiled(grammar), self.lexicon, own, self.trust, opener, free, lost, forces=forces
        )

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
    """Control tokens by name, as a mapping whose error names a missing one."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def __getitem__(self, name: str) -> int:
        return self._lexicon.control_ids([name])[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lexicon.tokenizer.control_tokens)

    def __len__(self) -> int:
        return len(self._lexicon.tokenizer.control_tokens)
