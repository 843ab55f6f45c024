"""``tokenizer.json``, read with the ``tokenizers`` library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tokenizers
from tokenizers.models import BPE

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.tokenizer.components import MOST_CHARACTERS, check_components
from langchain_gemma_jax.models.tokenizer.control import MARKERS, is_marker
from langchain_gemma_jax.models.tokenizer.interface import Tokenizer
from langchain_gemma_jax.models.tokenizer.library import only_tokenizer_errors
from langchain_gemma_jax.models.tokenizer.pieces import SPACE, byte_level_piece, spaced_pieces
from langchain_gemma_jax.models.tokenizer.vocabulary import Ends, Vocabulary

_SPACED_STEPS = {"Sequence", "Replace", "Metaspace", "ByteFallback", "Fuse"}
_ANY_TEXT = "Hello"
_TO_SPACE = ({"String": SPACE}, " ")


class HfJsonTokenizer(Tokenizer):
    """A ``tokenizer.json`` with a byte-pair model: Gemma's kind, or one over bytes ("byte level")."""

    def __init__(self, path: Path, data: bytes, ends: Ends) -> None:
        with only_tokenizer_errors(path, "a tokenizer.json"):
            check_components(path, data)
            library = tokenizers.Tokenizer.from_buffer(data)
            model = library.model
            if not isinstance(model, BPE):
                raise TokenizerError(path, "a byte-pair model (BPE)", f"the model {type(model).__name__}")
            for added in (model.continuing_subword_prefix, model.end_of_word_suffix):
                if len(added or "") > MOST_CHARACTERS:  # it would be copied for every word
                    raise TokenizerError(path, f"at most {MOST_CHARACTERS} characters beside a word", short(added))
            model.dropout = None  # else the same text gets other tokens each time
            markers, words = _added(library, model, ends)
            vocabulary = Vocabulary.of(path, _pieces(path, library, words), markers, ends)
            self._around = _around(library)
            if ends.may_lack_bos:  # another family's: a text begins as its own template says, or with nothing
                self._begin = () if self._around is None else self._around[0]
            # The same model (shared, not copied), which searches for no markers and adds nothing in front.
            self._text = tokenizers.Tokenizer(model)
            self._text.normalizer = library.normalizer
            self._text.pre_tokenizer = library.pre_tokenizer
            # A word that is not in the model itself would get another id here. It is encoded in pieces instead.
            self._text.add_tokens(
                [word for token_id, word in words.items() if model.token_to_id(word.content) == token_id]
            )
        super().__init__(path, vocabulary)

    def _spell(self, text: str) -> Sequence[int]:
        ids: list[int] = self._text.encode(text, add_special_tokens=False).ids
        return ids


def _around(library: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the ids that the file's template puts before and after a text. None: it has no template."""
    plain: list[int] = library.encode(_ANY_TEXT, add_special_tokens=False).ids
    whole: list[int] = library.encode(_ANY_TEXT).ids
    for at in range(len(whole) - len(plain) + 1):
        if plain and whole != plain and whole[at : at + len(plain)] == plain:
            return tuple(whole[:at]), tuple(whole[at + len(plain) :])
    return None


def _added(
    library: tokenizers.Tokenizer, model: BPE, ends: Ends
) -> tuple[dict[str, int], dict[int, tokenizers.AddedToken]]:
    """Return the markers, and the added strings that are ordinary text."""
    named = {ends.bos, ends.eos, ends.pad, model.unk_token, *MARKERS}
    markers = {name: token_id for name in named if name and (token_id := library.token_to_id(name)) is not None}
    words: dict[int, tokenizers.AddedToken] = {}
    for token_id, token in library.get_added_tokens_decoder().items():
        if is_marker(token.content.replace(SPACE, " "), special=token.special):
            markers[token.content] = token_id
        else:
            words[token_id] = token
    return markers, words


def _pieces(path: Path, library: tokenizers.Tokenizer, words: Mapping[int, tokenizers.AddedToken]) -> dict[int, bytes]:
    names: dict[str, int] = library.get_vocab(with_added_tokens=True)
    if not _is_byte_level(path, library):
        return dict(zip(names.values(), spaced_pieces(list(names)), strict=True))
    literal = {token_id: word.content.encode() for token_id, word in words.items()}
    return {token_id: byte_level_piece(name) for name, token_id in names.items()} | literal


def _is_byte_level(path: Path, library: tokenizers.Tokenizer) -> bool:
    """Return True if pieces are byte level, False if a space is U+2581. The decoder's steps tell.

    The decoder itself is not used: it cannot stream.

    Raises:
        TokenizerError: the decoder is of neither kind.
    """
    decoder: object = json.loads(library.decoder.__getstate__()) if library.decoder else None
    steps = list(_steps(decoder))
    kinds = [str(step["type"]) for step in steps]
    if kinds == ["ByteLevel"]:
        return True
    replacements = [(step["pattern"], step["content"]) for step in steps if step["type"] == "Replace"]
    if "ByteFallback" in kinds and _SPACED_STEPS.issuperset(kinds) and all(each == _TO_SPACE for each in replacements):
        return False
    expected = f"a decoder of Gemma's kind ({SPACE} to space, ByteFallback, Fuse), or ByteLevel alone"
    raise TokenizerError(path, expected, ", ".join(kinds) or "none")


def _steps(decoder: object) -> Iterator[Mapping[str, object]]:
    if isinstance(decoder, dict):
        yield decoder
        for inner in decoder.get("decoders", ()):
            yield from _steps(inner)
