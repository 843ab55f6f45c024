from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import CheckpointNotFoundError, CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import StoredArray, text_tower

EMBEDDING = "embedder/input_embedding"


def tower_of(*paths, shape=(4, 2), dtype="float32"):
    """The text tower of a tree with an embedding and arrays at these paths, "." between the keys of nested mappings."""
    tree = {path.replace(".", "/"): StoredArray(path, shape, dtype) for path in paths}
    return text_tower(tree, "/models/mine")


@pytest.mark.parametrize(
    ("embedding", "matrix"),
    [
        ("embedder.input_embedding", "layer_0.attn.q_einsum.w"),
        ("params.embedder.input_embedding", "params.layer_0.attn.q_einsum.w"),
        ("transformer/embedder.input_embedding", "transformer/layer_0/attn/q_einsum.w"),
        ("params.transformer.embedder.input_embedding", "params.transformer.layer_0.attn.q_einsum.w"),
    ],
)
def test_every_shape_of_a_tree_gives_the_same_names(embedding, matrix):
    tower = tower_of(embedding, matrix)

    assert {name: leaf.key for name, leaf in tower.items()} == {EMBEDDING: embedding, "layer_0/attn/q_einsum": matrix}


def test_what_is_no_part_of_the_text_tower_is_left_out():
    tower = tower_of(
        "params.embedder.input_embedding",
        "params.embedder.mm_input_projection.w",
        "params.embedder.audio_input_projection.w",
        "params.vision_encoder.siglip_encoder.embedding.kernel",
        "opt_state.0.mu.layer_0.attn.q_einsum.w",
        "step",
    )

    assert tower.keys() == {EMBEDDING}


def test_stacked_layers_are_dealt_out_in_the_order_of_their_types():
    stacked = "transformer/stacked_layers/attention_type_"
    tree = {
        "transformer/embedder/input_embedding": StoredArray("e", (4, 2), "float32"),
        f"{stacked}0/pre_ffw_norm/scale": StoredArray("local", (2, 7), "float32"),
        f"{stacked}1/pre_ffw_norm/scale": StoredArray("global", (1, 7), "float32"),
    }

    tower = text_tower(tree, "/models/mine")

    found = {name: (leaf.key, leaf.row, leaf.shape) for name, leaf in tower.items() if name != EMBEDDING}
    assert found == {
        "layer_0/pre_ffw_norm/scale": ("local", 0, (7,)),
        "layer_1/pre_ffw_norm/scale": ("global", 0, (7,)),
        "layer_2/pre_ffw_norm/scale": ("local", 1, (7,)),
    }


@pytest.mark.parametrize("shape", [(), (1 << 40, 2)])
def test_a_stack_that_can_be_none_is_refused_before_it_is_dealt_out(shape):
    with pytest.raises(CorruptCheckpointError, match="at most 1000 layers"):
        tower_of("embedder.input_embedding", "stacked_layers.attention_type_0.pre_ffw_norm.scale", shape=shape)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("layer_0.attn.q_einsum.lora.a", "LoRA adapters"),
        ("layer_0.mlp._LoRAEinsum_linear.lora.b", "LoRA adapters"),
        ("layer_0.attn.q_einsum._SimulateQuantizedEinsum_0.kernel", "quantized weights"),
        ("layer_0.mlp._IntEinsum_linear.kernel", "quantized weights"),
        ("layer_0.attn.q_einsumqat.kernel", "quantized weights"),
        ("layer_0.altup.modality_router.w", "Gemma 3n"),
        ("layer_0.laurel.linear_left.w", "Gemma 3n"),
    ],
)
def test_weights_that_cannot_be_used_as_they_are(path, reason):
    with pytest.raises(UnsupportedModelError, match=rf"^/models/mine: .*{reason}"):
        tower_of("embedder.input_embedding", path)


@pytest.mark.parametrize("dtype", ["int8", "int4", "float8_e4m3fn", "float64"])
def test_other_dtypes_count_as_quantized(dtype):
    with pytest.raises(UnsupportedModelError, match=rf"quantized weights \({EMBEDDING}, {dtype}\)"):
        tower_of("embedder.input_embedding", dtype=dtype)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("policy.layer_0.w", "anchor.layer_0.w"), "anchor, policy"),
        (("layer_0.attn.q_einsum.w",), "layer_0"),
        ((), "nothing"),
    ],
)
def test_a_tree_without_a_text_tower_is_described(paths, found):
    with pytest.raises(CheckpointNotFoundError, match=rf"embedder/input_embedding, found {found}\."):
        tower_of(*paths)
