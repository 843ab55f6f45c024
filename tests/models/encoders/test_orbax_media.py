"""A Gemma 3 in an Orbax checkpoint sees what transformers sees with the same weights."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.loading.load import load
from tests.models.checkpoint.official.test_orbax import flat, nested, save_to, under_params
from tests.models.vision.soft_tokens import BAR, apart, encoding, soft_tokens
from tests.parity.media_models import MODELS, PIXELS_OF, media_tensor, picture, plain_name
from tests.seeing_folder import golden
from tests.tiny_gemma import tiny_gemma

NAME = "gemma-3-4b-vision"
HEADS, SIDE = 3, 7


def towers() -> tuple[dict, dict]:
    """Return the vision tower and the projection as the official library has them."""
    shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(NAME)["tensors"])).items()}
    found = {plain_name(key): media_tensor(key, shape, NAME, 0) for key, shape in shapes.items()}

    def norm(name):
        return {"scale": found[f"vision_tower.{name}.weight"], "bias": found[f"vision_tower.{name}.bias"]}

    def dense(name):
        return {"kernel": found[f"vision_tower.{name}.weight"].T, "bias": found[f"vision_tower.{name}.bias"]}

    def block(index):
        at, attention = f"encoder.layers.{index}", {}
        for ours, theirs in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
            made = dense(f"{at}.self_attn.{theirs}")
            width = len(made["kernel"])
            attention[ours] = {
                "kernel": made["kernel"].reshape(width, HEADS, width // HEADS),
                "bias": made["bias"].reshape(HEADS, width // HEADS),
            }
        out = dense(f"{at}.self_attn.out_proj")
        attention["out"] = {"kernel": out["kernel"].reshape(HEADS, -1, len(out["bias"])), "bias": out["bias"]}
        return {
            "LayerNorm_0": norm(f"{at}.layer_norm1"),
            "LayerNorm_1": norm(f"{at}.layer_norm2"),
            "MultiHeadDotProductAttention_0": attention,
            "MlpBlock_0": {"Dense_0": dense(f"{at}.mlp.fc1"), "Dense_1": dense(f"{at}.mlp.fc2")},
        }

    patches = found["vision_tower.embeddings.patch_embedding.weight"]
    encoder = {
        "embedding": {
            "kernel": patches.reshape(-1, 3, SIDE, SIDE).transpose(2, 3, 1, 0),
            "bias": found["vision_tower.embeddings.patch_embedding.bias"],
        },
        "pos_embedding": found["vision_tower.embeddings.position_embedding.weight"][None],
        "Transformer": {
            **{f"encoderblock_{index}": block(index) for index in range(3)},
            "encoder_norm": norm("post_layernorm"),
        },
    }
    projection = {
        "mm_soft_embedding_norm": {"scale": found["multi_modal_projector.mm_soft_emb_norm.weight"]},
        "mm_input_projection": {"w": found["multi_modal_projector.mm_input_projection_weight"]},
    }
    return {"siglip_encoder": encoder}, projection


@pytest.fixture
def written(tmp_path, official_tree):
    """Write a folder with a checkpoint in one of its shapes, with or without a change of its tower."""

    def written(shape, change=lambda _: None):
        config = config_from_hf(MODELS[NAME].config, NAME)
        tree = official_tree(config)
        tower, projection = towers()
        change(tower["siglip_encoder"])
        tree = tree | {"embedder": tree["embedder"] | projection}
        tree = flat(tree) | flat_tower(tower) if shape is flat else shape(tree | {"vision_encoder": tower})
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name).write_bytes(tiny_gemma()[name])
        raw = {**MODELS[NAME].config, "text_config": {**MODELS[NAME].config["text_config"]}}
        (tmp_path / "config.json").write_text(json.dumps(raw))
        save_to(tmp_path / "checkpoint", tree)
        return tmp_path

    return written


def flat_tower(tower):
    """Return it as it was published, beside the text tower."""
    out = {}

    def visit(path, node):
        for name, value in node.items():
            if isinstance(value, dict):
                visit((*path, name), value)
            else:
                out.setdefault("/".join(path), {})[name] = value

    visit(("SigLiPFromPatches_0",), tower)
    return out


@pytest.mark.long
@pytest.mark.parametrize("shape", [nested, under_params, flat])
def test_soft_tokens_are_those_of_transformers(shape, written):
    model = load(written(shape), dtype="float32")
    assert model.encoders.loaded == {}
    encode = encoding(model)
    for number in PIXELS_OF:
        placed = model.media.place(Picture(picture(NAME, 0, number)))
        assert apart(soft_tokens(model, placed, encode), golden(NAME)[f"soft_0_{number}"]) <= BAR


def without_a_bias(tower):
    del tower["Transformer"]["encoderblock_1"]["LayerNorm_0"]["bias"]


def without_patches(tower):
    del tower["embedding"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_a_bias, "encoderblock_1/LayerNorm_0/bias, found none"),
        (without_patches, "embedding/kernel with 4 axes"),
    ],
)
def test_a_tower_that_is_not_whole_is_an_error(change, said, written):
    with pytest.raises(CheckpointError, match=said):
        load(written(nested, change))
