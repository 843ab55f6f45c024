"""A model's vocabulary, in the form that llguidance needs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from langchain_gemma_jax.errors import UnsupportedModelError

if TYPE_CHECKING:
    from llguidance import LLTokenizer


class GrammarTokenizer(Protocol):
    """The part of a tokenizer that grammars need."""

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


# Of llguidance's four sets of tokens whose masks are made in advance, those for what strings contain. The other two
# take a fifth of the time and 30 MB, and no mask is made faster by them.
_SLICES = [r'[^"\\\x00-\x1F\x7F]{1,30}', r'[^"\\\x00-\x1F\x7F]+']


class Lexicon:
    """A model's vocabulary, for matchers."""

    def __init__(self, tokenizer: GrammarTokenizer, vocab_size: int) -> None:
        """Make a lexicon. ``vocab_size``: the rows of the embedding, which can be more than the tokens."""
        self.tokenizer = tokenizer
        self.words = -(-vocab_size // 32)  # of a mask
        self._valid = min(tokenizer.vocab_size, vocab_size)
        self._making = threading.RLock()
        self._made: LLTokenizer | None = None

    def matching(self) -> LLTokenizer:
        """Return llguidance's form of the vocabulary. For Gemma's, making it takes a second; it is made once."""
        from llguidance import LLTokenizer, TokenizerWrapper

        with self._making:
            if self._made is None:
                wrapper = TokenizerWrapper(_Wrapped(self.tokenizer, self._valid))
                self._made = LLTokenizer(wrapper, slices=_SLICES)
                wrapper.tokens = ()  # copied by now; the wrapper itself is kept
            return self._made

    @property
    def end(self) -> int:
        """The token that llguidance takes for the end of a text. It is not used for that here."""
        return self.tokenizer.eos_ids[0]

    def control_ids(self, names: Sequence[str]) -> list[int]:
        """Return the ids of control tokens by their names.

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


class _Wrapped:
    """A tokenizer with the interface that llguidance expects."""

    def __init__(self, tokenizer: GrammarTokenizer, count: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = tokenizer.eos_ids[0]
        self.bos_token_id = None
        names = {token: name for name, token in tokenizer.control_tokens.items() if token < count}
        pieces = [tokenizer.token_bytes(token) for token in range(count)]
        # A token without bytes gets a name too, so that it is not taken for empty text.
        names |= {token: f"<[{token}]>" for token, piece in enumerate(pieces) if not piece and token not in names}
        self.tokens = [names[token].encode() if token in names else piece for token, piece in enumerate(pieces)]
        self.special_token_ids = sorted(names)

    def __call__(self, text: str) -> list[int]:
        if not isinstance(text, str):  # llguidance tries bytes first, and uses text if that fails
            raise TypeError("expected a str")
        return self._tokenizer.encode_text(text)
