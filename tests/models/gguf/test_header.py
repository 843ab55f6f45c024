"""A GGUF file is believed in nothing: whatever is wrong with it is a typed error, and costs neither time nor memory."""

from __future__ import annotations

import random
import re
import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    ConfigError,
    CorruptCheckpointError,
    TensorMismatchError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.gguf import header
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.gguf.header import Strings
from langchain_gemma_jax.models.gguf.opening import open_gguf, sampling_defaults
from langchain_gemma_jax.models.loading.load import load
from tests.models.damage import MOST_BYTES, check_damaged
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write

CODES = {int: "<Q", float: "<f", bool: "<?"}


def text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(name, kind: int, data: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + data


def tensor(name, shape=(32,), kind=0, offset=0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def container(entries=(), tensors=(), data=b"\0" * 4096, *, counts=None, magic=b"GGUF", version=3) -> bytes:
    head = magic + struct.pack("<IQQ", version, *(counts or (len(tensors), len(entries))))
    head += b"".join(entries) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + data


NAME = entry("general.architecture", 8, text("gemma3"))
BIG = (1 << 63) - 1
BAD = {
    "empty": (b"", "found a file of 0 bytes"),
    "another magic": (container(magic=b"GGML"), "begins with b'GGUF'"),
    "version 1": (container(version=1), "found version 1"),
    "big-endian": (container(version=3 << 24), "version 3 in big-endian order"),
    "no counts": (container()[:12], "incomplete"),
    "tensors without end": (container(counts=(BIG, 0)), "at most 65,536 tensors"),
    "entries without end": (container(counts=(0, BIG)), "at most 65,536 entries"),
    "more entries than there are": (container(counts=(0, 3), data=b""), "names of 1 to"),
    "a name without end": (container([struct.pack("<Q", BIG)]), "names of 1 to 1,024 bytes"),
    "no name": (container([entry("", 4, b"\0" * 4)]), "names of 1 to 1,024 bytes"),
    "a name twice": (container([NAME, NAME]), "'general.architecture' twice"),
    "a name that is no text": (container([entry(b"\xff", 4, b"\0" * 4)]), "texts in UTF-8"),
    "a string without end": (container([text("a") + struct.pack("<IQ", 8, BIG)]), "incomplete"),
    "a type that is none": (container([entry("a", 13, b"")]), "the type 13"),
    "a truth value of 2": (container([entry("a", 7, b"\2")]), "0 or 1"),
    "a list of truth values of 2": (container([entry("a", 9, struct.pack("<IQ", 7, 2) + b"\1\2")]), "0 or 1"),
    "a list without end": (container([entry("a", 9, struct.pack("<IQ", 4, BIG))]), "a header of at most"),
    "a long list": (container([entry("a", 9, struct.pack("<IQ", 12, 40_000_000))]), "incomplete"),
    "strings without end": (container([entry("a", 9, struct.pack("<IQ", 8, BIG))]), "incomplete"),
    "a list of lists": (container([entry("a", 9, struct.pack("<IQIQ", 9, 1, 4, 0))]), "a list in a list"),
    "no dimensions": (container((), [tensor("a", ())]), "1 to 4 dimensions"),
    "five dimensions": (container((), [tensor("a", (1,) * 5)]), "1 to 4 dimensions"),
    "dimensions without end": (container((), [text("a") + struct.pack("<I", 0xFFFFFFFF)]), "1 to 4 dimensions"),
    "a dimension of 0": (container((), [tensor("a", (0, 32))]), "a possible size"),
    "a product of 2^64": (container((), [tensor("a", (1 << 32, 1 << 32))]), "a possible size"),
    "half a block": (container((), [tensor("a", (48,), kind=2)]), "whole blocks of 32"),
    "half a block of 256": (container((), [tensor("a", (128, 256), kind=14)]), "whole blocks of 256"),
    "a tensor twice": (container((), [tensor("a"), tensor("a", offset=128)]), "'a' twice"),
    "an overlap": (container((), [tensor("a"), tensor("b", offset=64)]), "an overlap"),
    "a hole": (container((), [tensor("a"), tensor("b", offset=256)]), "a hole"),
    "not aligned": (container((), [tensor("a"), tensor("b", offset=129)]), "not aligned"),
    "an offset of 2^64": (container((), [tensor("a", offset=(1 << 64) - 32)]), "a hole"),
    "a tensor that is cut off": (container((), [tensor("a", (1025,))]), "incomplete"),
    "alignment 0": (container([entry("general.alignment", 4, struct.pack("<I", 0))]), "a power of two"),
    "alignment 48": (container([entry("general.alignment", 4, struct.pack("<I", 48))]), "a power of two"),
    "alignment 2^31": (container([entry("general.alignment", 4, struct.pack("<I", 1 << 31))]), "a power of two"),
    "alignment as text": (container([entry("general.alignment", 8, text("32"))]), "a power of two"),
}  # fmt: skip


def opened(path):
    """Everything that is done with a file before its weights are read."""
    model = open_gguf(path)
    with model.checkpoint.tensors:
        gguf_tokenizer(model.metadata, path)
        sampling_defaults(model.metadata)


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(tmp_path, case):
    content, says = BAD[case]
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match=says) as error:
        open_gguf(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("number", [4, 5, 38, 42, 43, 1000, 0xFFFFFFFF])
def test_a_type_of_tensor_that_is_not_known_is_another_releases_and_no_damage(tmp_path, number):
    path = tmp_path / "x.gguf"
    path.write_bytes(container((), [tensor("blk.0.ffn_down.weight", kind=number)]))
    says = "which the format has given up" if number < 42 else "does not read: it is newer than Q1_0, or the file is"
    with pytest.raises(UnsupportedModelError) as error:
        open_gguf(path)
    assert str(error.value).startswith(f"{path}: 'blk.0.ffn_down.weight' is of the type {number} of GGUF, which")
    assert says in str(error.value)
    assert str(error.value).endswith("in another quantisation, such as Q8_0 or Q4_K_M.")


def test_all_kinds_of_values_are_read(tmp_path):
    codes = {0: ("B", 200), 1: ("b", -3), 2: ("H", 60_000), 3: ("h", -9), 4: ("I", 1 << 31), 5: ("i", -7),
             6: ("f", 1e-6), 7: ("?", True), 10: ("Q", 1 << 63), 11: ("q", -(1 << 62)), 12: ("d", 0.1)}  # fmt: skip
    entries = [entry(f"one {code}", number, struct.pack(f"<{code}", value)) for number, (code, value) in codes.items()]
    entries += [
        entry(f"list {code}", 9, struct.pack(f"<IQ2{code}", number, 2, value, value))
        for number, (code, value) in codes.items()
    ]
    entries.append(entry("strings", 9, struct.pack("<IQ", 8, 2) + text("ä") + text("")))
    path = tmp_path / "x.gguf"
    path.write_bytes(container(entries, [tensor("t", (4, 8), offset=0)]))
    with open_source(path) as source:
        found = source.header.metadata
        assert source.shape("t") == (8, 4)
    for code, value in codes.values():
        assert type(found[f"one {code}"]) is type(value)
        assert found[f"one {code}"] == value
        np.testing.assert_array_equal(found[f"list {code}"], np.array([value, value], code))
    assert isinstance(found["strings"], Strings)
    assert found["strings"].all() == found["strings"].all() == ["ä", ""]


def test_lists_of_any_strings_are_read_as_they_are(tmp_path, monkeypatch):
    """Most are told by their bytes alone, many at a time; those that cannot be are read one by one."""
    path = tmp_path / "x.gguf"
    for seed in range(12):
        rng = random.Random(seed)
        monkeypatch.setattr(header, "_PIECE", rng.choice((64, 1000, 1 << 16)))
        odd = ["", "\0", "a\0b", "\0" * 9, "x" * 255, "x" * 256, "ä" * 200, "x" * 70_000][: rng.choice((0, 5, 8))]
        wanted = [
            "".join(rng.choices("ab \u2581日🙂", k=rng.randrange(1, 40))) for _ in range(rng.choice((1, 70, 9000)))
        ]
        for each in odd * rng.choice((1, 4)):
            wanted.insert(rng.randrange(len(wanted) + 1), each)
        path.write_bytes(container([entry("a", 9, struct.pack("<IQ", 8, len(wanted)) + b"".join(map(text, wanted)))]))
        with open_source(path) as source:
            found = source.header.metadata["a"]
            assert (len(found), found.all()) == (len(wanted), wanted), seed


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A tiny model in a file, and where its header ends."""
    path = tmp_path_factory.mktemp("sound") / "x.gguf"
    config = CONFIGS["gemma4, per-layer inputs and shared KV"]
    write(path, config, of_one_kind("Q4_0"), tokenizer=small_tokenizer())
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
            found[at : at + 4] = struct.pack("<I", rng.choice((0, 1, 4, 7, 8, 9, 13, 255, 0xFFFFFFFF)))
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


def test_a_header_that_never_ends_is_read_no_further_than_a_header_may_go(tmp_path):
    path = tmp_path / "x.gguf"
    start = container([text("a") + struct.pack("<IIQ", 9, 8, BIG)])
    with path.open("wb") as file:
        file.write(start[: start.rindex(struct.pack("<Q", BIG)) + 8])
        for _ in range(60):
            file.write((text(b"x" * 4000) * 270)[: 1 << 20])
    tracemalloc.start()
    try:
        with pytest.raises(CorruptCheckpointError, match=r"a header of at most|incomplete"):
            open_gguf(path)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


# What is in the file beside numbers.


def file_of(path, architecture="gemma3", config="gemma3", kind="Q8_0", change=lambda writer: None, **options):
    def more(writer):
        writer.kv_data[0].pop("general.architecture")
        writer.add_string("general.architecture", architecture)
        change(writer)

    write(path, CONFIGS[config], of_one_kind(kind), more=more, **options)
    return path


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3n", "gemma-embedding", "gemma4-assistant", "clip", ""])
def test_another_family_is_named(tmp_path, family):
    with pytest.raises(UnsupportedModelError, match=f"found {family!r}"):
        open_gguf(file_of(tmp_path / "x.gguf", family))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("block_count", None, "expected a value of gemma3.block_count"),
        ("block_count", 1 << 20, "at most 1000"),
        ("embedding_length", 0, "hidden_size"),
        ("attention.head_count", 0, "num_attention_heads"),
        ("attention.head_count_kv", 3, "a multiple of the key-value heads"),
        ("attention.value_length", 32, "64, as keys"),
        ("attention.sliding_window_pattern", [True] * 3, "a list of 2"),
        ("rope.scaling.type", "yarn", "found 'yarn'"),
        ("context_length", "many", "expected gemma3.context_length to be int, found 'many'"),
    ],
)
def test_metadata_that_cannot_be(tmp_path, name, value, says):
    def change(writer):
        writer.kv_data[0].pop(f"gemma3.{name}", None)
        add = {int: writer.add_uint32, str: writer.add_string, list: writer.add_array, type(None): lambda *_: None}
        add[type(value)](f"gemma3.{name}", value)

    with pytest.raises((ConfigError, UnsupportedModelError), match=says):
        open_gguf(file_of(tmp_path / "x.gguf", change=change))


def test_what_old_files_leave_out_is_what_llama_cpp_has_fixed(tmp_path):
    def change(writer):
        for name in [name for name in writer.kv_data[0] if "rope" in name or name.endswith("pattern")]:
            writer.kv_data[0].pop(name)

    def config(architecture):
        model = open_gguf(file_of(tmp_path / "x.gguf", architecture, architecture, change=change))
        model.checkpoint.tensors.close()
        return model.checkpoint.config

    found = config("gemma3").layers
    assert [one.window for one in found] == [8, 8]  # every sixth is global
    assert [one.rope.theta for one in found] == [1e4, 1e4]
    assert [one.window for one in config("gemma2").layers] == [8, None]


def test_a_tensor_that_nobody_knows_or_that_is_missing(tmp_path):
    path = file_of(tmp_path / "x.gguf", change=lambda w: w.add_tensor("blk.0.attn_q.bias", np.zeros(32, np.float32)))
    with pytest.raises(TensorMismatchError, match=r"also 'blk.0.attn_q.bias'"):
        open_gguf(path)


@pytest.mark.parametrize(
    ("name", "number", "size", "says"),
    [
        ("blk.1.ffn_down.weight", 20, 18, r"'blk.1.ffn_down.weight' in F32, .*Q4_0, Q4_1, .*Q6_K, found IQ4_NL"),
        ("blk.0.attn_q.weight", 39, 17, r"'blk.0.attn_q.weight' in .*found MXFP4"),
        ("blk.0.attn_norm.weight", 8, 34, r"'blk.0.attn_norm.weight' in float32.*found Q8_0"),
        ("token_embd.weight", None, 0, "expected a tensor 'token_embd.weight'"),
        ("blk.1.attn_k.weight", None, 0, "expected a tensor 'blk.1.attn_k.weight'"),
        ("blk.1.attn_k.weight", 0, 4, r"'blk.1.attn_k.weight' of shape \[128, 256\]"),
    ],
)
def test_a_tensor_in_a_format_that_is_not_read_of_another_shape_or_missing(tmp_path, name, number, size, says):
    def change(writer):
        add = writer.add_tensor

        def other(given, tensor, raw_dtype=None):
            if given != name:
                add(given, tensor, raw_dtype=raw_dtype)
            elif number == 0:
                add(given, np.zeros((32, 32), np.float32))
            elif number is not None:
                rows = 1 if tensor.ndim < 2 else len(tensor)
                shape = (8 * size,) if tensor.ndim < 2 else (rows, 8 * size)
                add(given, np.zeros(shape, np.uint8), raw_dtype=gguf.GGMLQuantizationType(number))

        writer.add_tensor = other

    path = file_of(tmp_path / "x.gguf", change=change, tokenizer=small_tokenizer())
    with pytest.raises(TensorMismatchError, match=says):
        load(path, dtype="float32", progress=False)


@pytest.mark.parametrize("named", ["x.gguf", "./x.gguf", ".", "", "../x"])
def test_whatever_a_file_or_a_folder_is_called_by_the_error_names_it(tmp_path, monkeypatch, named):
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    path = file_of(tmp_path / "x" / "x.gguf", tokenizer=small_tokenizer())
    content = path.read_bytes().replace(b"blk.1.attn_k.weight", b"blk.1.attn_X.weight")
    path.write_bytes(content)
    with pytest.raises(TensorMismatchError) as error:
        load(Path(named), dtype="float32", progress=False)
    assert Path(error.value.path).name in {"x", "x.gguf"}
    assert Path(error.value.path).exists()
    assert str(error.value).startswith(f"{error.value.path}: expected the tensors of a gemma3")
    for nothing in ("", ".", "..", Path()):
        assert Path(str(TensorMismatchError(nothing, "a", "b")).partition(":")[0]).is_absolute()


def test_images_beside_a_text_model_are_passed_over(tmp_path):
    path = file_of(
        tmp_path / "x.gguf", change=lambda w: w.add_tensor("v.blk.0.attn_q.weight", np.zeros(32, np.float32))
    )
    open_gguf(path).checkpoint.tensors.close()


# Shards.


def shards(tmp_path, **options):
    write(tmp_path / "m.gguf", CONFIGS["gemma3"], of_one_kind("Q8_0"), split_max_tensors=9, **options)
    return sorted(tmp_path.glob("*.gguf"))


def test_a_model_in_shards_is_opened_by_any_of_them(tmp_path):
    whole = file_of(tmp_path / "whole.gguf")
    with open_source(whole) as source:
        expected = {name: source.shape(name) for name in source.names()}
    whole.unlink()
    paths = shards(tmp_path)
    assert len(paths) > 2
    for path in paths:
        model = open_gguf(path)
        with model.checkpoint.tensors as source:
            assert {name: source.shape(name) for name in source.names()} == expected
    paths[1].rename(tmp_path / "away")
    with pytest.raises(CheckpointNotFoundError, match=rf"no {re.escape(paths[1].name)}"):
        open_gguf(paths[0])
    paths[2].rename(paths[1])
    (tmp_path / "away").rename(paths[2])
    with pytest.raises(CorruptCheckpointError, match=r"split\.no"):
        open_gguf(paths[0])


def test_a_link_that_was_named_is_followed_and_one_in_a_shards_place_is_not(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    whole = file_of(tmp_path / "elsewhere" / "x.gguf")
    (tmp_path / "here" / "y.gguf").symlink_to(whole)
    open_gguf(tmp_path / "here" / "y.gguf").checkpoint.tensors.close()
    whole.unlink()
    for path in shards(tmp_path / "elsewhere"):
        (tmp_path / "here" / path.name).symlink_to(path)
    with pytest.raises(UnsafeCheckpointError, match="a link to"):
        open_gguf(min((tmp_path / "here").glob("m-*.gguf")))
    with pytest.raises(CheckpointNotFoundError):
        open_gguf(tmp_path / "here" / "gone.gguf")


def test_a_shard_by_another_name_is_no_model(tmp_path):
    first = shards(tmp_path)[0]
    first.rename(tmp_path / "model.gguf")
    with pytest.raises(CorruptCheckpointError, match=r"split\.count"):
        open_gguf(tmp_path / "model.gguf")


def test_a_cut_off_file_is_said_to_be_incomplete(tmp_path):
    path = file_of(tmp_path / "x.gguf")
    content = path.read_bytes()
    path.write_bytes(content[:-33])
    with pytest.raises(CorruptCheckpointError, match="incomplete"):
        open_gguf(path)


# The chat format.


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
