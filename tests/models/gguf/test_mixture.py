"""The name of a file's quantization is its writer's, with the formats of its tensors."""

from __future__ import annotations

import gguf
import pytest

from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.mixture import NAMES, mixture_of
from tests.models.gguf.make import CONFIGS, write


def written(path, kind_of, file_type, **options):
    def more(writer):
        if file_type is not None:
            writer.add_file_type(file_type)

    write(path, CONFIGS["gemma3"], kind_of, more=more, **options)
    return path


def kind_of(name):
    return "Q6_K" if "attn_v" in name else "Q3_K"


@pytest.mark.parametrize(
    ("file_type", "named"), [(12, "Q3_K_M: "), (None, ""), (gguf.LlamaFileType.GUESSED, ""), (1 << 31, "")]
)
def test_a_file_names_its_mixture(tmp_path, file_type, named):
    path = written(tmp_path / "x.gguf", kind_of, file_type)
    assert mixture_of(path) == f"{named}3 kinds, Q3_K, Q6_K, F32"
    path.write_bytes(path.read_bytes()[:-100])
    assert mixture_of(path) is None


def test_shards_name_it_together(tmp_path):
    written(tmp_path / "m.gguf", kind_of, 12, split_max_tensors=9)
    first = min(tmp_path.glob("*.gguf"))
    with open_source(first) as source:
        assert source.mixture == "Q3_K_M: 3 kinds, Q3_K, Q6_K, F32"


def test_the_names_are_those_of_the_formats_own_package():
    theirs = {each.value: each.name.removeprefix("MOSTLY_").removeprefix("ALL_") for each in gguf.LlamaFileType}
    assert {**NAMES, gguf.LlamaFileType.GUESSED.value: "GUESSED"} == theirs
