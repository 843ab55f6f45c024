"""The embedded models' tokenizer: bytes, letters of many scripts, and pieces of the words that training uses.

A text has the same tokens wherever it stands, so that copying it is copying tokens. To that end a space
is a token of its own and never part of a word, digits and punctuation stand alone, and a word
is cut where its case changes: ``dueDate`` is ``due`` and ``Date``.

    python -m training.tokenizer build/sprout-tokenizer
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers

from training.data.mixture import conversation
from training.data.render import pieces
from training.data.side import Side

VOCABULARY = 4096

CONTROL = (
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<|turn>",
    "<turn|>",
    "<|tool>",
    "<tool|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    '<|"|>',
    "<|channel>",
    "<channel|>",
    "<|think|>",
)
"""Gemma 4's control tokens, the first four with Gemma's ids."""

# One match is one word; merges never cross from one to the next.
WORDS = r"\p{N}|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+(?!\p{Ll})|\p{Lu}|[\p{L}\p{M}]+| +|[^\p{L}\p{M}\p{N} ]"

# Scripts whose characters are two bytes each: every character is a token.
_TWO_BYTES = ((0x00C0, 0x017F), (0x0384, 0x03CE), (0x0401, 0x045F), (0x05D0, 0x05EA), (0x0621, 0x064A))
# Of the others, every "page" of 64 characters is one, so that a character is its page and a byte.
_THREE_BYTES = (
    (0x0900, 0x0EFF),
    (0x10A0, 0x10FF),
    (0x2000, 0x27BF),
    (0x3000, 0x33FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xFF00, 0xFFEF),
)
_FOUR_BYTES = ((0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF))
_BYTE_NAMES = pre_tokenizers.ByteLevel.alphabet()

_SAMPLE = 6000  # conversations whose words the pieces are learned from


def build(seed: str = "tokenizer", conversations: int = _SAMPLE, vocabulary: int = VOCABULARY) -> tokenizers.Tokenizer:
    """The tokenizer. The same seed gives the same one."""
    foreign = list(dict.fromkeys(_foreign_merges()))
    learned = _learn(_ascii_words(seed, conversations), vocabulary - len(CONTROL) - len(foreign))
    vocab = {name: index for index, name in enumerate(CONTROL)}
    merges = foreign + [merge for merge in learned if merge not in set(foreign)]
    for piece in (*sorted(_names_of_bytes()), *(first + second for first, second in merges)):
        vocab.setdefault(piece, len(vocab))
    made = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in CONTROL])
    return made


def save(tokenizer: tokenizers.Tokenizer, folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json`` as transformers and this package read them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder: Path) -> tokenizers.Tokenizer:
    """The tokenizer that ``save`` wrote."""
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def _ascii_words(seed: str, conversations: int) -> Iterator[str]:
    for index in range(conversations):
        for piece in pieces(conversation(f"{seed}/{index}", Side.TRAIN)):
            text = piece.text
            for name in CONTROL:
                text = text.replace(name, "\n")
            yield text.encode("ascii", "replace").decode()


def _learn(texts: Iterable[str], size: int) -> list[tuple[str, str]]:
    """The merges of a byte-pair model over these texts."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=_BYTE_NAMES, show_progress=False, special_tokens=[])
    learner.train_from_iterator(texts, trainer)
    stored = json.loads(learner.to_str())["model"]["merges"]
    return [(first, second) for first, second in stored]


def _foreign_merges() -> Iterator[tuple[str, str]]:
    for first, last in _TWO_BYTES:
        for point in range(first, last + 1):
            names = _named(chr(point))
            yield names[0], names[1]
    for first, last in _THREE_BYTES:
        for point in range(first, last + 1, 64):
            names = _named(chr(point))
            yield names[0], names[1]
    for first, last in _FOUR_BYTES:
        for point in range(first, last + 1, 64):
            names = _named(chr(point))
            yield names[0], names[1]
            yield names[0] + names[1], names[2]


def _named(character: str) -> list[str]:
    names = _names_of_bytes_in_order()
    return [names[byte] for byte in character.encode()]


def _names_of_bytes() -> list[str]:
    return list(_BYTE_NAMES)


def _names_of_bytes_in_order() -> list[str]:
    """What a byte-level vocabulary calls each byte: itself where it is visible, else a character from 256 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    names, hidden = [], 256
    for byte in range(256):
        names.append(chr(byte if byte in visible else hidden))
        hidden += byte not in visible
    return names


def main() -> None:
    """Build the tokenizer and write it into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    made = build()
    save(made, arguments.folder)
    sys.stdout.write(f"{made.get_vocab_size()} tokens in {arguments.folder}\n")


if __name__ == "__main__":
    main()
