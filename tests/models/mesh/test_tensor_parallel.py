"""Matrices are divided as a model's plan has them, or by their shapes, between heads, and else are whole."""

from __future__ import annotations

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Division
from langchain_gemma_jax.models.mesh.tensor_parallel import cuts_of, divided, why_not_among

TENSORS = {
    "model.embed_tokens.weight": (320, 64),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.layers.0.self_attn.q_proj.bias": (64,),
    "model.layers.0.self_attn.k_proj.weight": (32, 64),
    "model.layers.0.self_attn.o_proj.weight": (64, 64),
    "model.layers.0.mlp.gate_proj.weight": (96, 64),
    "model.layers.0.mlp.down_proj.weight": (64, 96),
    "model.layers.0.mlp.experts.gate_up_proj": (4, 64, 64),
    "model.layers.0.mlp.experts.down_proj": (4, 64, 32),
    "model.layers.0.norm.weight": (64,),
    "model.layers.0.odd.weight": (7, 5),
    "lm_head.weight": (320, 64),
}
PLAN = {
    "model.layers.*.self_attn.q_proj": "colwise",
    "model.layers.*.self_attn.k_proj": "colwise",
    "model.layers.*.self_attn.o_proj": "rowwise",
    "model.layers.*.mlp.experts.gate_up_proj": "packed_colwise",
    "model.layers.*.mlp.experts.down_proj": "rowwise",
    "model.layers.*.mlp.gate_proj": "colwise_gather_output",
    "model.layers.*.mlp.down_proj": "rowwise_split_input",
    "lm_head": "colwise_gather_output",
}
AXES = {
    "embed_tokens.weight": 0, "q_proj.weight": 0, "k_proj.weight": 0, "o_proj.weight": 1, "gate_proj.weight": 0,
    "down_proj.weight": 1, "experts.gate_up_proj": 1, "experts.down_proj": 2, "lm_head.weight": 0,
}  # fmt: skip
HEADS = {"q_proj.weight", "k_proj.weight", "o_proj.weight"}


def cuts(plan):
    found = cuts_of(TENSORS.items(), plan, width=64, head_dim=16)
    return {next(name for name in AXES if cut.name.endswith(name)): cut for cut in found}


def test_shapes_say_what_a_plan_says():
    for plan in (PLAN, {}):
        assert {name: cut.axis for name, cut in cuts(plan).items()} == AXES
        assert {name for name, cut in cuts(plan).items() if cut.size == 16} == HEADS
    assert "q_proj.weight" not in cuts({"model.layers.*.self_attn.q_proj": "replicate"}), (
        "the plan goes before the shape"
    )


def test_parts_end_between_heads_and_what_does_not_divide_is_repeated():
    parts = {}
    for name, cut in cuts(PLAN).items():
        whole = next(each for each in TENSORS if each.endswith(name))
        spec = divided(ArraySpec(TENSORS[whole], "float32"), cut)
        parts[name] = [Division(devices).ways_of(spec.sections) for devices in (1, 2, 4, 8)]
    assert parts["q_proj.weight"] == [1, 2, 4, 4], "four heads"
    assert parts["k_proj.weight"] == [1, 2, 2, 2], "two key heads"
    assert parts["gate_proj.weight"] == [1, 2, 4, 8]
    assert divided(ArraySpec((7, 5), "float32"), None).sections == ()


def test_heads_decide_among_how_many():
    assert [devices for devices in range(1, 9) if why_not_among(devices, 6) is None] == [1, 2, 3, 4, 6, 8]
    assert "6 query heads do not divide among 5" in str(why_not_among(5, 6))
