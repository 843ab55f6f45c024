"""A model's side of grammars: its vocabulary as llguidance wants it, and what was compiled for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from langchain_gemma_jax.engine.constrain import Constraint, Trust
from langchain_gemma_jax.engine.grammar.ending import Outline
from langchain_gemma_jax.engine.grammar.lark import lark
from langchain_gemma_jax.engine.grammar.nodes import Grammar
from langchain_gemma_jax.engine.options import MAX_LOGIT_BIASES, Sampling
from langchain_gemma_jax.errors import InputError, SchemaError, UnsupportedModelError

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

KEPT = 64  # compiled grammars of a model


class Tokenizer(Protocol):
    """As much of a tokenizer as grammars need."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def eos_ids(self) -> tuple[int, ...]: ...

    @property
    def control_tokens(self) -> Mapping[str, int]: ...

    def control_id(self, name: str) -> int | None: ...

    def control_name(self, token_id: int) -> str | None: ...

    def token_bytes(self, token_id: int) -> bytes: ...

    def encode_text(self, text: str) -> list[int]: ...


class Lexicon:
    """A model's vocabulary, for matchers."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        """``vocab_size``: rows of the embedding, of which there can be more than tokens."""
        self.tokenizer = tokenizer
        self.words = -(-vocab_size // 32)  # of a mask
        self._valid = min(tokenizer.vocab_size, vocab_size)

    @cached_property
    def matching(self) -> LLTokenizer:
        """Llguidance's form of it, which takes a second to make for a vocabulary of Gemma's size."""
        from llguidance import LLTokenizer, TokenizerWrapper

        return LLTokenizer(TokenizerWrapper(_Wrapped(self.tokenizer, self._valid)))

    @property
    def end(self) -> int:
        """The token by which llguidance means that a text is over. It is not asked for that here."""
        return self.tokenizer.eos_ids[0]

    def control_ids(self, names: Sequence[str]) -> list[int]:
        """The ids of control tokens.

        Raises:
            UnsupportedModelError: the vocabulary lacks one.
        """
        found = []
        for name in names:
            token = self.tokenizer.control_id(name)
            if token is None:
                raise UnsupportedModelError(
                    f"This grammar needs the control token {name!r}, and the model's vocabulary does not have it. Make "
                    "the grammar with the model's own chat format: dialect_for(...)."
                )
            found.append(token)
        return found


@dataclass(frozen=True)
class Compiled:
    """A grammar for a vocabulary."""

    matcher: LLMatcher  # at its begin: copied for each request
    outline: Outline
    opener: int | None


class Constraints:
    """The grammars of one model. Any thread may come here."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self.lexicon = Lexicon(tokenizer, vocab_size)
        self.trust = Trust()
        self._lock = threading.Lock()
        self._compiled: OrderedDict[Grammar, Compiled] = OrderedDict()

    def prepare(self, grammar: Grammar | None = None) -> None:
        """Make what takes long: for any grammar, and for this one."""
        with self._lock:
            _ = self.lexicon.matching
            if grammar is not None and grammar.root is not None:
                self._known(grammar)

    def begin(self, sampling: Sampling, stops: frozenset[int]) -> tuple[Constraint | None, tuple[int, ...]]:
        """What a request is held to, if anything, and the tokens that never come.

        Raises:
            InputError: see ``of``; or there is no room beside the biases.
        """
        if sampling.grammar is None:
            return None, ()
        banned = self.lexicon.control_ids(sampling.grammar.banned)
        if (count := len({*sampling.logit_bias, *banned})) > MAX_LOGIT_BIASES:
            raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES} with the grammar's own, found {count}.")
        return self.of(sampling.grammar, stops, forces=not sampling.logprobs), tuple(banned)

    def of(self, grammar: Grammar, stops: frozenset[int], *, forces: bool) -> Constraint | None:
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
        with self._lock:
            compiled = self._known(grammar)
            matcher = compiled.matcher.deep_copy()
        own = frozenset(token for token in stops if self.lexicon.tokenizer.control_name(token) is not None)
        return Constraint(compiled, matcher, self.lexicon, own, self.trust, forces=forces)

    def _known(self, grammar: Grammar) -> Compiled:
        compiled = self._compiled.get(grammar)
        if compiled is None:
            compiled = self._compiled[grammar] = self._compile(grammar)
            if len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(grammar)
        return compiled

    def _compile(self, grammar: Grammar) -> Compiled:
        from llguidance import LLMatcher

        text = lark(grammar, _Ids(self.lexicon))
        matcher = LLMatcher(self.lexicon.matching, LLMatcher.grammar_from_lark(text), log_level=0)
        if matcher.is_error():
            raise SchemaError("#", f"llguidance does not take it: {matcher.get_error().splitlines()[0]}")
        opener = None if grammar.opener is None else self.lexicon.control_ids([grammar.opener])[0]
        return Compiled(matcher, Outline(grammar), opener)


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


class _Wrapped:
    """A tokenizer in the shape in which llguidance takes them."""

    def __init__(self, tokenizer: Tokenizer, count: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = tokenizer.eos_ids[0]
        self.bos_token_id = None
        names = {token: name for name, token in tokenizer.control_tokens.items() if token < count}
        pieces = [tokenizer.token_bytes(token) for token in range(count)]
        # What stands for nothing is no text either.
        names |= {token: f"<[{token}]>" for token, piece in enumerate(pieces) if not piece and token not in names}
        self.tokens = [names[token].encode() if token in names else piece for token, piece in enumerate(pieces)]
        self.special_token_ids = sorted(names)

    def __call__(self, text: str) -> list[int]:
        if not isinstance(text, str):  # it is tried out with bytes, and then sends none
            raise TypeError("expected a str")
        return self._tokenizer.encode_text(text)
