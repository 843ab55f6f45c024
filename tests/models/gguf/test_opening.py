"""A GGUF file is opened whole and believed in nothing: damage is a typed error, and costs neither time nor memory."""

from __future__ import annotations

import random
import struct
from itertools import cycle

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.gguf.opening import open_gguf, sampling_defaults
from langchain_gemma_jax.models.seams.block_forms import DEFAULT
from tests.models.damage import check_damaged
from tests.models.gguf.make import CONFIGS, QUANTIZED, file_of, small_tokenizer, write

BIG = (1 << 63) - 1


def opened(path):
    """Everything that is done with a file before its weights are read."""
    model = open_gguf(path)
    with model.checkpoint.tensors:
        gguf_tokenizer(model.metadata, path)
        sampling_defaults(model.metadata)
        model.checkpoint.storage("float32", DEFAULT)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A tiny model in a file of every block format, and where its header ends."""
    path, kinds = tmp_path_factory.mktemp("sound") / "x.gguf", cycle(QUANTIZED)
    config = CONFIGS["gemma4, per-layer inputs and shared KV"]
    write(path, config, lambda _: next(kinds), tokenizer=small_tokenizer())
    opened(path)
    with open_source(path) as source:
        head = min(each.begin for each in source.header.tensors.values())
    return path.read_bytes(), head


def mutated(content: bytes, head: int, rng: random.Random) -> bytes:
    """The file with something wrong in its header, or cut off anywhere."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 3))):
        at = rng.randrange(head)
        kind = rng.randrange(7)
        if kind == 0:
            found[at] = rng.randrange(256)
        elif kind == 1:
            found[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 1 << 31, 1 << 32, BIG, 1 << 63, (1 << 64) - 1)))
        elif kind == 2:
            found[at : at + 4] = struct.pack(
                "<I", rng.choice((0, 1, 4, 7, 8, 9, 13, 15, 16, 22, 29, 35, 40, 41, 42, 255, 0xFFFFFFFF))
            )
        elif kind == 3:
            del found[at : at + rng.choice((1, 8, 64))]
        elif kind == 4:
            found[at:at] = rng.randbytes(rng.choice((1, 8, 64)))
        elif kind == 5:
            other = rng.randrange(head)
            found[at : at + 16] = found[other : other + 16]
        else:
            del found[rng.choice((at, len(found) - 1, rng.randrange(len(found)))) :]
            break
    return bytes(found)


def check_mutations(path, sound, seeds):
    check_damaged(seeds, lambda rng: path.write_bytes(mutated(*sound, rng)), lambda: opened(path))


@pytest.mark.long
def test_mutations_are_typed_errors(tmp_path, sound):
    check_mutations(tmp_path / "x.gguf", sound, range(150))


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_two_thousand_mutations_are_typed_errors(tmp_path, sound):
    check_mutations(tmp_path / "x.gguf", sound, range(150, 2150))


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3n", "gemma4-assistant", "clip", ""])
def test_another_family_is_named(tmp_path, family):
    with pytest.raises(UnsupportedModelError, match=f"found {family!r}"):
        open_gguf(file_of(tmp_path / "x.gguf", family))


@pytest.mark.parametrize(
    ("template", "tokens", "spoken"),
    [
        ("{{ bos_token }}<start_of_turn>user", ["<start_of_turn>"], "gemma"),
        (
            "<start_of_turn>developer <start_function_call>",
            ["<start_of_turn>", "<start_function_call>"],
            "function_gemma",
        ),
        ("<|turn>user", ["<|turn>", "<start_of_turn>", "<start_function_call>"], "gemma4"),
        ("<|turn>user", ["<start_of_turn>"], None),
        ("{% for i in range(10**9) %}{{ ().__class__ }}{% endfor %}", ["<start_of_turn>"], None),
        (None, ["<start_of_turn>"], None),
    ],
)
def test_the_template_says_which_format_and_is_never_run(tmp_path, template, tokens, spoken):
    add = (lambda _: None) if template is None else (lambda writer: writer.add_chat_template(template))
    model = open_gguf(file_of(tmp_path / "x.gguf", change=add))
    with model.checkpoint.tensors:
        assert model.chat_format(tokens).name == spoken
