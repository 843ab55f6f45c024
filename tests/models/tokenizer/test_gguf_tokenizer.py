"""The tokenizer in a GGUF file's metadata spells every text as the published one that it was converted from."""

from __future__ import annotations

import random

import gguf
import pytest

from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.models.gguf.make import merges_tokenizer, sentencepiece_tokenizer

SCRIPTS = [
    "Zürich", "каша", "日本語", "हिन्दी", "العربية", "🙂🏽", "עברית", "ไทย", "한국어", "ⵣ", "\u2581", "<0x41>",
    "ﬀ", "\x00",
]  # fmt: skip


def read(path, add, *, change=None):
    """The tokenizer of a file with this metadata and no tensors."""
    writer = gguf.GGUFWriter(path, "gemma3")
    add(writer)
    if change is not None:
        change(writer.kv_data[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with open_source(path) as source:
        return gguf_tokenizer(Metadata(source.header, str(path)), path)


@pytest.fixture(scope="module", params=["sentencepiece", "gemma4", "gpt2"])
def pair(request, tmp_path_factory, folders, gemma_json, sentencepiece_model):
    """The published tokenizer, and the one that a file has."""
    path = tmp_path_factory.mktemp("gguf") / "x.gguf"
    if request.param == "sentencepiece":
        return load_tokenizer(folders["sentencepiece"]), read(path, sentencepiece_tokenizer(sentencepiece_model))[0]
    return load_tokenizer(folders["gemma_json"]), read(path, merges_tokenizer(gemma_json, request.param))[0]


def test_ids_are_those_of_the_published_tokenizer(pair, prose, markers):
    published, ours = pair
    for name in ("vocab_size", "bos_id", "eos_ids", "pad_id", "control_tokens"):
        assert getattr(ours, name) == getattr(published, name)
    for token_id in range(-1, published.vocab_size + 1):
        assert ours.token_bytes(token_id) == published.token_bytes(token_id)
    rng = random.Random(0)
    texts = [prose, *prose.splitlines(), *SCRIPTS, *markers, "\n\n\n\t\t", "   a    b", ""]
    texts += ["".join(rng.choices([*SCRIPTS, *markers, *prose], k=30)) for _ in range(170)]
    for text in texts:
        assert ours.encode_text(text) == published.encode_text(text)
        assert ours.encode_scaffold(text) == published.encode_scaffold(text)


def test_the_digest_tells_tokenizers_apart(tmp_path, gemma_json, sentencepiece_model):
    makers = (sentencepiece_tokenizer(sentencepiece_model), merges_tokenizer(gemma_json))
    found = [read(tmp_path / f"{n}.gguf", makers[n % 2])[1] for n in range(4)]
    assert found[0] == found[2] != found[1] == found[3]


KEYS = "tokenizer.ggml."


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("model", "bert", "found 'bert'"),
        ("model", None, "found none"),
        ("tokens", None, "found none"),
        ("token_type", None, "found none"),
        ("token_type", [1, 1], "found 2"),
        ("scores", None, "found none"),
        ("scores", [0.0], "found 1"),
        ("scores", ["a"], "list of numbers"),
        ("bos_token_id", 10_000_000, "found 10000000"),
        ("add_space_prefix", True, "found add_space_prefix"),
        ("tokens", 5, "a list of strings"),
    ],
)
def test_a_bad_vocabulary_is_a_typed_error(tmp_path, sentencepiece_model, name, value, says):
    def change(entries):
        entries.pop(KEYS + name)
        if value is not None:
            maker = gguf.GGUFWriter(tmp_path / "unused", "gemma3")
            (maker.add_array if isinstance(value, list) else maker.add_string if isinstance(value, str)
             else maker.add_bool if isinstance(value, bool) else maker.add_uint32)(KEYS + name, value)  # fmt: skip
            entries[KEYS + name] = maker.kv_data[0][KEYS + name]

    with pytest.raises(TokenizerError, match=says):
        read(tmp_path / "x.gguf", sentencepiece_tokenizer(sentencepiece_model), change=change)


@pytest.mark.parametrize("bad", [["ab"], [" b"], ["a "], [""]])
def test_a_merge_is_of_two_pieces(tmp_path, gemma_json, bad):
    content = {**gemma_json, "model": {**gemma_json["model"], "merges": [[bad[0]]]}}
    library = merges_tokenizer(gemma_json)

    def change(entries):
        maker = gguf.GGUFWriter(tmp_path / "unused", "gemma3")
        maker.add_array(KEYS + "merges", content["model"]["merges"][0])
        entries[KEYS + "merges"] = maker.kv_data[0][KEYS + "merges"]

    with pytest.raises(TokenizerError, match="merges of two pieces"):
        read(tmp_path / "x.gguf", library, change=change)
