"""Small vocabularies of the kinds that Gemma models come with, trained on the spot in milliseconds.

The texts that they are trained on are full of markers, and so the byte-pair models learn to put
markers together from ordinary pieces: the worst case for keeping users from writing them.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer

SPACE = "\u2581"
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
MARKERS = [
    *("[multimodal]", "[toxicity=0]", "[@BOS@]", "<2mass>", "<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>"),
    *("<start_function_call>", "<end_function_call>", "<escape>", "<|tool_call>", "<tool_call|>", '<|"|>'),
    *("<|channel>", "<channel|>", "<|think|>", "<|tool_response>", "<tool_response|>", "<start_of_image>"),
    *(f"<unused{n}>" for n in range(12)),
]
RUNS = [character * length for character in "\n\t" for length in range(2, 32)]
SPACE_RUNS = [SPACE * length for length in range(2, 32)]
TAGS = ["<table>", "</table>", "<td>", "</td>", "<h1>", "</h1>", "<b>", "</b>", "<s>", "</s>", "<code>", "</code>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ORDINARY = [*RUNS, *SPACE_RUNS, *TAGS]

PROSE = """Once a tool has answered, the model reads the answer and goes on. It is 23 °C in Zürich, said the tool.
def call(name: str, **arguments: object) -> str:\n    return f"{name}({arguments})"  # a line of code
Ein Satz auf Deutsch, une phrase en français, предложение по-русски, 日本語の文, हिन्दी में एक वाक्य, جملة بالعربية 🙂
{"city": "München", "days": [1, 2, 3], "metric": true, "note": null}
"""
CORPUS = [*PROSE.split(), *PROSE.splitlines(), *MARKERS * 20]


@pytest.fixture(scope="session")
def gemma_json() -> dict[str, object]:
    """The content of a ``tokenizer.json`` like Gemma's."""
    library = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    library.normalizer = normalizers.Replace(" ", SPACE)
    library.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="never")  # no piece reaches into a next word
    library.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=[*SPECIAL, *BYTES], show_progress=False)
    library.train_from_iterator(CORPUS, trainer)
    library.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")  # as in Gemma's: it never finds a space
    content = json.loads(library.to_str())
    return _with_added_tokens(content, plain_pieces=[*MARKERS, *ORDINARY])


def _with_added_tokens(content: dict, plain_pieces: list[str]) -> dict:
    vocabulary = content["model"]["vocab"]
    for piece in plain_pieces:
        vocabulary.setdefault(piece, len(vocabulary))
    matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    content["added_tokens"] = [
        {"id": vocabulary[text], "content": text, "special": text in SPECIAL} | matching
        for text in sorted([*SPECIAL, *plain_pieces], key=vocabulary.__getitem__)
    ]
    return content


@pytest.fixture(scope="session")
def byte_level_json() -> dict[str, object]:
    """The content of a ``tokenizer.json`` over bytes."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(CORPUS, trainer)
    library.add_special_tokens(SPECIAL)
    library.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in MARKERS])
    return json.loads(library.to_str())


@pytest.fixture(scope="session")
def sentencepiece_model() -> bytes:
    """The content of a ``tokenizer.model`` like Gemma's."""
    return train_sentencepiece(user_defined_symbols=[*MARKERS, *ORDINARY])


def train_sentencepiece(**options: object) -> bytes:
    names = {"pad_piece": "<pad>", "eos_piece": "<eos>", "bos_piece": "<bos>", "unk_piece": "<unk>"}
    ids = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
    as_it_is = {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"}
    kind = {"model_type": "bpe", "vocab_size": 800, "byte_fallback": True, "control_symbols": ["<mask>"]}
    settings = names | ids | as_it_is | kind | {"minloglevel": 2} | options
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, **settings)
    return model.getvalue()


@pytest.fixture(scope="session")
def train_sentencepiece_model():
    return train_sentencepiece


def write(folder: Path, content: dict[str, object] | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        (folder / "tokenizer.model").write_bytes(content)
    else:
        (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    return folder


@pytest.fixture
def load_content(tmp_path):
    """Loads a tokenizer from the content of its file."""

    def load(content: dict[str, object] | bytes) -> Tokenizer:
        return load_tokenizer(write(tmp_path / "model", content))

    return load


@pytest.fixture(scope="session")
def folders(tmp_path_factory, gemma_json, byte_level_json, sentencepiece_model) -> dict[str, Path]:
    contents = {"gemma_json": gemma_json, "byte_level_json": byte_level_json, "sentencepiece": sentencepiece_model}
    return {name: write(tmp_path_factory.mktemp(name), content) for name, content in contents.items()}


@pytest.fixture(scope="session", params=["gemma_json", "byte_level_json", "sentencepiece"])
def folder(request, folders) -> Path:
    return folders[request.param]


@pytest.fixture(scope="session")
def tokenizer(folder) -> Tokenizer:
    return load_tokenizer(folder)


@pytest.fixture(scope="session")
def gemma(folders) -> Tokenizer:
    return load_tokenizer(folders["gemma_json"])


@pytest.fixture(scope="session")
def library_ids(folder):
    """The library's own encoding, markers and all: what a model was trained on."""
    if (folder / "tokenizer.model").exists():
        return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).encode
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: library.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="session")
def markers() -> list[str]:
    return [*SPECIAL, *MARKERS]


@pytest.fixture(scope="session")
def prose() -> str:
    return PROSE
