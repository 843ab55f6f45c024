"""The names of a file's quantization: the one that its writer gave it, and the formats of its tensors.

A file is rarely of one format: norms are in float32, and what matters most is in more bits than the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.gguf.header import Header, read_header

FILE_TYPE = "general.file_type"

NAMES: Mapping[int, str] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0",
}  # fmt: skip
"""The name of each file type, by its number in the metadata."""


def mixture(headers: Iterable[Header]) -> str:
    """Return the name of a model's quantization, with the formats of its tensors, those of the most numbers first."""
    named, numbers = "", Counter[str]()
    for header in headers:
        number = header.metadata.get(FILE_TYPE)
        named = named or (NAMES.get(number, "") if type(number) is int else "")
        for entry in header.tensors.values():
            numbers[entry.kind.name] += (entry.end - entry.begin) // entry.kind.nbytes * entry.kind.elements
    kinds = [kind for kind, _ in numbers.most_common()]
    if [named] == kinds or not kinds:
        return named
    return f"{named + ': ' if named else ''}{len(kinds)} {'kind' if len(kinds) == 1 else 'kinds'}, {', '.join(kinds)}"


def mixture_of(path: Path) -> str | None:
    """Return the mixture of a file, by its header alone. None: it cannot be read."""
    file = None
    try:
        file = OpenFile(path, path)
        return mixture([read_header(file)])
    except (OSError, CheckpointError, UnsupportedModelError):
        return None
    finally:
        if file is not None:
            file.close()
