"""Shapes without arrays."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Layout, abstract, total_bytes, walk
from tests.parity.tiny import small

MATRICES = (
    "embed", "head", "ple_embed", "ple_in", "qkv", "attn_out", "gate_up", "down", "router", "ple_gate", "ple_out",
)  # fmt: skip


def shapes(name, **changes):
    tree = abstract(small(name).replace(**changes), "float32")
    return {"/".join(map(str, path)): spec.shape for path, spec in walk(tree)}


def test_gemma_1():
    layer = {
        "attn_norm": (32,),
        "qkv": ((4 + 2 * 1) * 8, 32),
        "attn_out": (32, 4 * 8),
        "ffw_norm": (32,),
        "gate_up": (2 * 48, 32),
        "down": (32, 48),
    }
    layers = {f"layers/{i}/{key}": shape for i in range(2) for key, shape in layer.items()}
    assert shapes("gemma-2b") == {"embed": (160, 32), "final_norm": (32,), **layers}


def test_an_untied_head_is_one_more_table():
    assert set(shapes("gemma-2b", tied_head=False)) - set(shapes("gemma-2b")) == {"head"}
    assert shapes("gemma-2b", tied_head=False)["head"] == (160, 32)


def test_gemma_2_has_norms_on_both_sides_and_gemma_3_on_heads_too():
    second, third = shapes("gemma-2-27b"), shapes("gemma-3-4b")
    assert {key.split("/")[-1] for key in second} - {key.split("/")[-1] for key in shapes("gemma-2b")} == {
        "post_attn_norm",
        "post_ffw_norm",
    }
    assert {key.split("/")[-1] for key in third} - {key.split("/")[-1] for key in second} == {"q_norm", "k_norm"}
    assert third["layers/0/q_norm"] == (10,)


def test_layers_that_share_kv_have_queries_only():
    found = shapes("gemma-4-e2b")
    assert found["layers/0/qkv"] == ((4 + 1 + 1) * 8, 32)
    assert found["layers/1/qkv"] == ((4 + 1 + 1) * 16, 32)
    assert found["layers/2/qkv"] == (4 * 8, 32)
    assert found["layers/3/qkv"] == (4 * 16, 32)
    assert ("layers/1/k_norm" in found, "layers/2/k_norm" in found) == (True, False)
    assert (found["layers/1/gate_up"], found["layers/2/gate_up"]) == ((96, 32), (192, 32))


def test_per_layer_inputs():
    found = shapes("gemma-4-e2b")
    assert found["ple_embed"] == (160, 4 * 8)
    assert found["ple_in"] == (4 * 8, 32)
    assert found["ple_in_norm"] == (8,)
    assert (found["layers/3/ple_gate"], found["layers/3/ple_out"]) == ((8, 32), (32, 8))
    assert found["layers/3/ple_norm"] == (32,)
    assert found["layers/3/scale"] == ()


def test_where_the_key_is_the_value_there_is_one_projection_for_both():
    found = shapes("gemma-4-31b")
    assert found["layers/0/qkv"] == ((8 + 2 * 4) * 8, 32)
    assert found["layers/1/qkv"] == ((8 + 2) * 16, 32)


def test_experts():
    found = shapes("gemma-4-26b-a4b")
    assert found["layers/0/experts_gate_up"] == (16, 24, 32)
    assert found["layers/0/experts_down"] == (16, 32, 12)
    assert found["layers/0/router"] == (16, 32)
    assert found["layers/0/expert_scale"] == (16,)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gemma-4-e2b", "gemma-4-26b-a4b"])
def test_matrices_have_the_dtype_and_vectors_are_float32(name, dtype):
    for path, spec in walk(abstract(small(name), dtype)):
        is_matrix = path[-1] in {*MATRICES, "experts_gate_up", "experts_down"}
        assert spec.dtype == (dtype if is_matrix else "float32"), path


def test_bytes_are_those_of_the_arrays():
    tree = abstract(small("gemma-2b"), "bfloat16")
    matrices = 160 * 32 + 2 * (48 * 32 + 32 * 32 + 96 * 32 + 32 * 48)
    assert total_bytes(tree) == 2 * matrices + 4 * (32 + 2 * 2 * 32)


@pytest.mark.parametrize("layer", [True, False])
@pytest.mark.parametrize("embed", [True, False])
def test_a_layout_turns_matrices_and_nothing_else(layer, embed):
    tree = abstract(small("gemma-4-e2b").replace(tied_head=False), "float32", Layout(layer, embed))
    for path, spec in walk(tree):
        if path[-1] in {"embed", "head"}:
            assert spec.transposed is (not embed)
        elif path[-1] == "ple_embed":  # only ever looked up by row
            assert not spec.transposed
        else:
            assert spec.transposed is (path[-1] in MATRICES and not layer), path


def test_turned_arrays_keep_their_logical_shape_and_their_bytes():
    spec = ArraySpec((3, 5, 7), "bfloat16", transposed=True)
    assert (spec.shape, spec.stored_shape, spec.nbytes) == ((3, 5, 7), (3, 7, 5), 3 * 5 * 7 * 2)
    assert ArraySpec((3, 5), "float32").stored_shape == (3, 5)


def test_a_number_has_one_element():
    assert ArraySpec((), "float32").nbytes == 4


def test_walking_goes_in_one_order():
    config = small("gemma-4-e2b")
    paths = [path for path, _ in walk(abstract(config))]
    assert paths == [path for path, _ in walk(abstract(config, "float32", Layout(False, False)))]
    assert len(set(paths)) == len(paths)
    assert [path[1] for path in paths if path[0] == "layers"] == sorted(
        path[1] for path in paths if path[0] == "layers"
    )
