"""A GGUF file is believed in nothing: whatever is wrong with it is a typed error, and costs neither time nor memory."""

from __future__ import annotations

import random
import struct
import tracemalloc

import gguf
import numpy as np
import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.gguf import header
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.header import TYPES, Strings
from langchain_gemma_jax.models.gguf.opening import open_gguf
from tests.models.damage import MOST_BYTES


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


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(tmp_path, case):
    content, says = BAD[case]
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(CorruptCheckpointError, match=says) as error:
        open_gguf(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (4, "(Q4_2) of GGUF, which the format has given up. "),
        (38, "(IQ4_NL_8_8) of GGUF, which the format has given up. "),
        (42, "(Q2_0) of GGUF, which is newer than the types of the gguf package 0.19, which are read here. "),
        (43, "of GGUF, which the gguf package 0.19 does not know: it is of a newer release, or the file is damaged. "),
        (0xFFFFFFFF, "of GGUF, which the gguf package 0.19 does not know"),
    ],
)
def test_a_type_of_tensor_that_is_not_known_is_another_releases_and_no_damage(tmp_path, number, says):
    path = tmp_path / "x.gguf"
    path.write_bytes(container((), [tensor("blk.0.ffn_down.weight", kind=number)]))
    with pytest.raises(UnsupportedModelError) as error:
        open_gguf(path)
    assert str(error.value).startswith(f"{path}: 'blk.0.ffn_down.weight' is of the type {number} {says}")
    assert str(error.value).endswith("another file of the same repository, in a quantization such as Q8_0 or Q4_K_M.")


def test_the_types_are_those_of_the_formats_own_package():
    theirs = {kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType}
    assert {number: (kind.name, kind.elements, kind.nbytes) for number, kind in TYPES.items()} == theirs


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
