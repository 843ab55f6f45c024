"""The bytes of each token of a vocabulary, from a file of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.tokenizer.control import TURN_ENDS
from langchain_gemma_jax.models.tokenizer.pieces import Pieces

MAX_TOKENS = 1 << 22  # sixteen times Gemma's: a higher id means a damaged file, and would allocate a large table


@dataclass(frozen=True)
class Ends:
    """The control tokens for the begin of a text, its end, and padding. Gemma's names are the default."""

    bos: str = "<bos>"
    eos: str = "<eos>"
    pad: str = "<pad>"
    may_lack_bos: bool = False  # a text may begin without one

    @classmethod
    def of(cls, named: Mapping[str, str]) -> Ends:
        """Return the ends that a file names; Gemma's where it names none."""
        return cls(named.get("bos", cls.bos), named.get("eos", cls.eos), named.get("pad", cls.pad))


@dataclass(frozen=True)
class Vocabulary:
    """A checked vocabulary. Make one with ``Vocabulary.of``."""

    pieces: Pieces  # by id; empty for control tokens
    control_tokens: Mapping[str, int]
    byte_ids: Sequence[int]  # the token that stands for each single byte
    bos_id: int
    eos_ids: tuple[int, ...]
    pad_id: int

    @classmethod
    def of(
        cls,
        path: Path,
        pieces: Mapping[int, bytes] | Sequence[bytes],
        control_tokens: Mapping[str, int],
        ends: Ends = Ends(),
    ) -> Vocabulary:
        """Return the vocabulary of these pieces (bytes by id, maybe with gaps) and control tokens (id by string).

        Raises:
            TokenizerError: it cannot encode every text, or lacks bos or eos. ``path`` is the file for the message.
        """
        controls = set(control_tokens.values())
        known = pieces if isinstance(pieces, Mapping) else range(len(pieces))
        size = max(max(known, default=-1), max(controls, default=-1)) + 1
        if size > MAX_TOKENS:
            raise TokenizerError(path, f"token ids below {MAX_TOKENS:,}", f"the id {size - 1:,}")
        table = [b""] * size
        if isinstance(pieces, Mapping):
            for token_id, piece in pieces.items():
                table[token_id] = piece
        else:
            table[: len(pieces)] = pieces
        for token_id in controls:
            table[token_id] = b""
        # Of two tokens for a byte, the later one: characters follow the bare bytes, and models were trained with them.
        byte_ids = {table[token_id][0]: token_id for token_id, length in enumerate(map(len, table)) if length == 1}
        missing = sorted(set(range(256)) - byte_ids.keys())
        if missing:
            raise TokenizerError(
                path,
                "a vocabulary that can spell any text: a token for each of the 256 bytes",
                f"none for {len(missing)} of them, the first 0x{missing[0]:02X}",
                "Gemma's have the pieces <0x00> to <0xFF>, and `byte_fallback` on.",
            )
        if ends.eos not in control_tokens or (ends.bos not in control_tokens and not ends.may_lack_bos):
            raise TokenizerError(
                path,
                f"control tokens for the begin and the end of a text, {ends.bos} and {ends.eos}",
                f"{len(control_tokens)} control tokens, not both of these among them",
            )
        eos_names = dict.fromkeys((ends.eos, "<eos>", *TURN_ENDS))
        eos_ids = tuple(control_tokens[name] for name in eos_names if name in control_tokens)
        return cls(
            pieces=Pieces(table),
            control_tokens=MappingProxyType(dict(sorted(control_tokens.items(), key=lambda item: item[1]))),
            byte_ids=tuple(byte_ids[byte] for byte in range(256)),
            bos_id=control_tokens.get(ends.bos, control_tokens[ends.eos]),
            eos_ids=eos_ids,
            pad_id=control_tokens.get(ends.pad, eos_ids[0]),
        )
