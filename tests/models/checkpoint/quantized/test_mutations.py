"""Whatever is changed in the fields of a quantized release: a typed error or a model, soon and for little memory."""

from __future__ import annotations

import json
import random
import struct

import pytest

from langchain_gemma_jax.models.loading.load import load
from tests import tiny_gemma as tiny
from tests.models.checkpoint.quantized import test_compressed_tensors as compressed
from tests.models.checkpoint.quantized import test_mobile as mobile
from tests.models.damage import check_damaged

VALUES = [
    None,
    0,
    -1,
    1,
    7,
    1 << 31,
    1 << 63,
    1 << 200,
    1.5,
    1e308,
    True,
    "",
    "x",
    "I8",
    "F32",
    [],
    [[]],
    [1 << 40] * 2,
]
VALUES += [[0, 1 << 63], {}, {"a": {}}, "9" * 5000, [0] * 1000]


@pytest.fixture(params=[compressed, mobile], ids=["compressed tensors", "mobile"])
def folder(request, tmp_path, monkeypatch):
    for name, value in (("hidden_size", 32), ("intermediate_size", 64)):
        monkeypatch.setitem(tiny.CONFIG, name, value)
    return request.param.write(tmp_path / "x", request.param.packed_and_dense()[0])


def changed(table: dict, rng: random.Random) -> None:
    """Change a field of a table, or of one inside of it."""
    while rng.random() < 0.6 and (inner := [value for value in table.values() if isinstance(value, dict) and value]):
        table = rng.choice(inner)
    name = rng.choice(list(table))
    kind = rng.randrange(4)
    if kind == 0:
        del table[name]
    elif kind == 1:
        table[name] = table[rng.choice(list(table))]
    else:
        table[name] = rng.choice(VALUES)


def mutated(config: bytes, weights: bytes, rng: random.Random) -> tuple[bytes, bytes]:
    """The two files with something wrong in what the configuration or the table of tensors says."""
    if rng.random() < 0.5:
        said = json.loads(config)
        changed(said["quantization_config"] if rng.random() < 0.7 else said, rng)
        return json.dumps(said).encode(), weights
    (length,) = struct.unpack("<Q", weights[:8])
    if rng.random() < 0.3:
        head = bytearray(weights[: 8 + length])
        for _ in range(rng.choice((1, 3))):
            head[rng.randrange(len(head))] = rng.randrange(256)
        return config, bytes(head) + weights[8 + length :]
    table = json.loads(weights[8 : 8 + length])
    packed = [
        name for name in table if name.rpartition(".")[2].startswith(("weight_", "embedding_", "input_", "output_"))
    ]
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(packed if rng.random() < 0.8 else list(table))
        changed(table[name] if name in table and rng.random() < 0.8 else table, rng)
    head = json.dumps(table).encode()
    return config, struct.pack("<Q", len(head)) + head + weights[8 + length :]


def check(folder, seeds):
    files = folder / "config.json", folder / "model.safetensors"
    sound = [path.read_bytes() for path in files]

    def damage(rng):
        for path, content in zip(files, mutated(*sound, rng), strict=True):
            path.write_bytes(content)

    def opened():
        load(folder, dtype="float32", progress=False).close()

    opened()
    check_damaged(seeds, damage, opened)


@pytest.mark.long
def test_mutations_are_typed_errors(folder):
    check(folder, range(40))


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_two_thousand_mutations_are_typed_errors(folder):
    check(folder, range(40, 1040))
