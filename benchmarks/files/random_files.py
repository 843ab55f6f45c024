"""Files of larger Gemma 3 with random weights, for when only speed is asked: the vocabulary is the real 270M's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import gguf
import numpy as np
import numpy.typing as npt

from benchmarks.files.real_files import FILE, FOLDER, copy_fields, finish
from benchmarks.rivals.gguf_file import gguf_name

SIZES: Mapping[str, Mapping[str, int]] = {  # by the shape's name: what differs from the 270M, as GGUF calls it
    "1b": {
        "embedding_length": 1152,
        "block_count": 26,
        "feed_forward_length": 6912,
        "attention.head_count": 4,
        "attention.head_count_kv": 1,
    },
    "4b": {
        "embedding_length": 2560,
        "block_count": 34,
        "feed_forward_length": 10240,
        "attention.head_count": 8,
        "attention.head_count_kv": 4,
        "attention.sliding_window": 1024,
    },
}
HEAD, VOCABULARY = 256, 262144
Numbers = npt.NDArray[Any]


def random_file(size: str, kind: str) -> Path:
    """A file of one shape with every matrix in one kind of numbers, made once. It needs the real file beside it."""
    path = FOLDER / f"gemma-3-{size}-random-{kind}.gguf"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, "gemma3")
    changed: dict[str, object] = {f"gemma3.{name}": value for name, value in SIZES[size].items()}
    copy_fields(gguf.GGUFReader(FILE), writer, {**changed, "general.name": f"Gemma 3 {size}, random weights"})
    random = np.random.default_rng(0)
    for name, shape in shapes_of(SIZES[size]):
        if len(shape) == 1:
            writer.add_tensor(name, np.ones(shape, np.float32))
        else:
            stored = gguf.GGMLQuantizationType[kind]
            # A large embedding, which is the output matrix too, would make every token predict itself.
            spread = shape[1] ** -0.5 * (0.3 if name.startswith("token_embd") else 1.0)
            writer.add_tensor(name, drawn(random, cast("tuple[int, int]", shape), kind, spread), raw_dtype=stored)
    finish(writer)
    unfinished.rename(path)
    return path


def shapes_of(size: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor by its name in the file, with its shape."""
    from benchmarks.work.checkpoint import shapes

    as_config = {
        "hidden_size": size["embedding_length"],
        "intermediate_size": size["feed_forward_length"],
        "num_hidden_layers": size["block_count"],
        "num_attention_heads": size["attention.head_count"],
        "num_key_value_heads": size["attention.head_count_kv"],
        "head_dim": HEAD,
        "vocab_size": VOCABULARY,
    }
    for name, shape in shapes(as_config):
        yield gguf_name(name), shape


def drawn(random: np.random.Generator, shape: tuple[int, int], kind: str, spread: float) -> Numbers:
    """Random numbers of about the spread, as the kind stores them: a row of bytes for each row."""
    rows, columns = shape
    if kind == "BF16":
        # The upper half of a float32 is a bfloat16.
        values = np.float32(spread) * random.standard_normal(shape, dtype=np.float32)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    # A block: its scale as a float16, and 32 whole numbers. Uniform ones of n steps spread over n / sqrt(12).
    steps, nbytes = {"Q8_0": (256, 32), "Q4_0": (16, 16)}[kind]
    blocks = random.integers(0, 256, (rows, columns // 32, 2 + nbytes), dtype=np.uint8)
    scale = np.array([spread * 12**0.5 / steps], np.float16)
    blocks[:, :, :2] = scale.view(np.uint8)
    return blocks.reshape(rows, -1)
