"""Google's mobile releases stay packed in 2, 4 and 8 bits, and give the numbers that the published code gives."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save

from langchain_gemma_jax.errors import GemmaJaxError, InputError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.hf_names import HfNaming
from langchain_gemma_jax.models.compare import score
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.packed.blocks import Stacked
from langchain_gemma_jax.models.packed.channel_matrix import ChannelMatrix
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.weights import total_bytes
from tests import tiny_gemma as tiny
from tests.models.packed.test_channel_matrix import stored

GOLDEN = Path(__file__).parents[3] / "goldens" / "gemma-4-mobile.npz"
SAID = {
    "quant_method": "gemma",
    "num_bits": 4,
    "quantize_embeddings": True,
    "modules_to_not_convert": ["per_layer_model_projection"],
    "module_quant_configs": {"(a+)+$": {"num_bits": 2}},  # an expression that nobody should look for
}
DOWN, EMBED = "model.layers.1.mlp.down_proj", "model.embed_tokens"


GRID = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "tensor", "dynamic": False}
WORDS = {
    "quant_method": "compressed-tensors",
    "format": "mixed-precision",
    "kv_cache_scheme": None,
    "config_groups": {
        f"group_{bits}": {
            "format": "pack-quantized",
            "targets": ["(a+)+$"],
            "weights": {"num_bits": bits, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False},
            "input_activations": GRID,
            "output_activations": None,
        }
        for bits in (2, 4, 8)
    },
}


def in_words(tensors, dense):
    """The same model as ``-qat-mobile-ct`` spells it. Every second matrix of eight bits stays in bytes.

    ``dense`` has each matrix' shape.
    """
    found, eights = {}, 0
    for name, value in ((name, np.asarray(value)) for name, value in tensors.items()):
        base, _, last = name.rpartition(".")
        if value.dtype in {np.dtype("uint8"), np.dtype("int8")}:
            bits = value.shape[1] * 8 // dense[base][1]
            eights += bits == 8
            if bits == 8 and eights % 2:
                found[name] = value
                continue
            counted = value.view(np.uint8) ^ np.uint8(128 if bits == 8 else 0)  # from the least number on
            found[f"{base}.weight_packed"] = counted.view(np.int32)
            found[f"{base}.weight_shape"] = np.array(dense[base], np.int64)
        else:
            found[f"{base}.{SPELLED.get(last, last)}"] = value
    return found


SPELLED = {
    "embedding_scale": "weight_scale",
    "input_activation_scale": "input_scale",
    "output_activation_scale": "output_scale",
}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setitem(tiny.CONFIG, "hidden_size", 32)
    monkeypatch.setitem(tiny.CONFIG, "intermediate_size", 64)


def packed_and_dense(seed=0):
    """The tensors as published, and those that they stand for where nothing is rounded to a grid."""
    rng, published, dense = np.random.default_rng(seed), {}, {}
    tensors = tiny.tiny_tensors(seed)
    tensors["lm_head.weight"] = tensors[f"{EMBED}.weight"]
    for name, weight in tensors.items():
        base = name.removesuffix(".weight")
        if "_proj" not in name and base not in {"lm_head", EMBED}:
            published[name] = dense[name] = weight.astype(ml_dtypes.bfloat16)
            continue
        bits, groups = (2, 1) if base == "lm_head" or "mlp" in base else (2, 4) if base == EMBED else (4, 1)
        bits = 8 if "o_proj" in base else bits
        whole = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), weight.shape)
        scales = rng.uniform(0.01, 0.03, (len(weight), groups)).astype(np.float32) * (4.0 if bits == 2 else 1.0)
        numbers, scale = ("embedding_quantized", "embedding_scale") if base == EMBED else ("weight", "weight_scale")
        published |= {f"{base}.{numbers}": stored(whole, bits), f"{base}.{scale}": scales}
        if base != EMBED:
            published |= {f"{base}.{grid}_activation_scale": np.float32(0) for grid in ("input", "output")}
        dense[name] = whole.astype(np.float32) * np.repeat(scales, weight.shape[1] // groups, axis=1)
    published |= {f"model.layers.0.self_attn.{each}_cache_scale": np.float32(0.01) for each in "kv"}
    return published, {name: weight.astype(np.float32) for name, weight in dense.items()}


def write(folder, tensors, said=SAID, **config):
    folder.mkdir()
    for name, content in tiny.tiny_gemma().items():
        (folder / name).write_bytes(content)
    (folder / "model.safetensors").write_bytes(save({name: np.asarray(each) for name, each in tensors.items()}))
    raw = tiny.CONFIG | config | ({} if said is None else {"quantization_config": said})
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


@pytest.mark.long
def test_such_a_folder_stays_packed_and_is_the_dense_model(tmp_path):
    published, dense = packed_and_dense()
    folder = write(tmp_path / "packed", published)
    with load(folder, progress=False) as model:
        layer = model.params["layers"][1]
        assert [matrix.bits for matrix in layer["qkv"].weights] == [4, 4, 4]
        assert (layer["down"].bits, layer["attn_out"].bits, model.params["embed"].bits) == (2, 8, 2)
        assert isinstance(layer["gate_up"], Stacked)
        assert isinstance(model.params["head"], ChannelMatrix)
        assert model.nbytes == total_bytes(model.recipe.abstract(model.config))
        assert model.nbytes < 1.05 * sum(each.nbytes for each in published.values())
        for ours, theirs in ((layer["down"], DOWN), (model.params["embed"], EMBED), (model.params["head"], "lm_head")):
            found = ours.rows(jnp.arange(len(ours.numbers)))
            np.testing.assert_array_equal(found, dense[f"{theirs}.weight"])
        queries = layer["qkv"].rows(jnp.arange(32))
        np.testing.assert_array_equal(queries, dense["model.layers.1.self_attn.q_proj.weight"])
        again = load_again(model, progress=False)
        again.close()
    with pytest.raises(InputError, match="packed already"):
        load(folder, weights="int8", progress=False)


@pytest.mark.slow
def test_scores_are_the_dense_models_and_grids_a_part_of_the_model(tmp_path):
    published, dense = packed_and_dense()
    twin = write(tmp_path / "dense", dense, None, tie_word_embeddings=False)
    with load(write(tmp_path / "packed", published), progress=False) as model:
        ours = score(model, "AB CD")
    with load(twin, dtype="float32", progress=False) as model:
        theirs = score(model, "AB CD")
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    assert ours.best == theirs.best
    published[f"{DOWN}.output_activation_scale"] = np.float32(0.5)
    with load(write(tmp_path / "grids", published), progress=False) as model:
        assert abs(score(model, "AB CD").loss - theirs.loss) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_scores_are_those_of_the_published_code(tmp_path, seed, words):
    """A tiny model of E2B's kind, made and run by transformers: ``tests/goldens/make_mobile.py``; in both spellings."""
    golden = np.load(GOLDEN)
    files = {name.partition("/")[2]: golden[name] for name in golden.files if name.startswith(f"{seed}/")}
    tokens, expected = files.pop("tokens"), files.pop("logits")
    raw = json.loads(bytes(golden["config"]).decode())
    if words:
        config = config_from_hf({name: value for name, value in raw.items() if name != "quantization_config"}, "x")
        naming = HfNaming("model.", "lm_head.weight")
        parts = [part for path, _ in walk(abstract(config)) for part in naming(config, path)]
        files = in_words(files, {part.name.removesuffix(".weight"): part.shape for part in parts})
        assert {value.dtype.name for name, value in files.items() if name.endswith("_packed")} == {"int32"}
        raw |= {"quantization_config": WORDS}
    folder = tmp_path / "mobile"
    folder.mkdir()
    for name, content in tiny.tiny_gemma().items():
        (folder / name).write_bytes(content)
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "model.safetensors").write_bytes(save(files))
    with load(folder, progress=False) as model:
        cache = allocate(model.config.cache_layout, 1, len(tokens), "float32")
        zero = jnp.zeros(1, jnp.int32)

        @jax.jit
        def scores(params, tokens):
            hidden, _ = forward(params, model.config, model.recipe, tokens, zero, zero + tokens.shape[1], cache)
            return logits(params, model.config, model.recipe, hidden)[0]

        found = np.asarray(scores(model.params, jnp.asarray(tokens[None])))
    assert np.abs(found - expected).max() < 2e-3 * expected.std(-1).min()
    assert found.argmax(-1).tolist() == expected.argmax(-1).tolist()


@pytest.mark.long
def test_words_are_the_same_model_as_bytes(tmp_path):
    published, dense = packed_and_dense()
    shapes = {name.removesuffix(".weight"): weight.shape for name, weight in dense.items()}
    words = in_words(published, shapes)
    with load(write(tmp_path / "bytes", published), progress=False) as model:
        theirs = jax.tree.map(np.asarray, model.params)
    with load(write(tmp_path / "words", words, WORDS), progress=False) as model:
        jax.tree.map(np.testing.assert_array_equal, model.params, theirs)
    for part, value, says in (
        ("weight_shape", np.array([32, 63], np.int64), r"weight_shape' to say \[32, 64\]"),
        ("weight_shape", None, "weight_shape' to say"),
        ("weight_packed", words[f"{DOWN}.weight_packed"][:, :-1].copy(), r"of shape \[32, 64\]"),
        ("input_scale", np.ones(2, np.float32), "to be one number"),
    ):
        wrong = {name: tensor for name, tensor in (words | {f"{DOWN}.{part}": value}).items() if tensor is not None}
        with pytest.raises(TensorMismatchError, match=says):
            load(write(tmp_path / f"{part}{says[:3]}{value is None}", wrong, WORDS), progress=False)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_bits": 3}, "expected num_bits 2 or 4 or 8 in the weights of 'group_4', found 3"),
        ({"type": "float"}, "expected type 'int'"),
        ({"symmetric": False}, "expected symmetric True"),
        ({"dynamic": True}, "expected dynamic False or None"),
    ],
)
def test_words_of_another_kind_are_refused(tmp_path, changes, says):
    groups = WORDS["config_groups"]
    weights = groups["group_4"]["weights"] | changes
    for said, expected in (
        (groups | {"group_4": groups["group_4"] | {"weights": weights}}, says),
        (
            groups | {"group_8": groups["group_8"] | {"input_activations": GRID | {"dynamic": True}}},
            "input_activations",
        ),
        (groups | {"group_8": {"weights": None}}, "to quantize weights, found None"),
    ):
        folder = write(tmp_path / expected[:12].replace(" ", ""), {}, WORDS | {"config_groups": said})
        with pytest.raises(UnsupportedModelError, match=expected):
            load(folder, progress=False)
    with pytest.raises(UnsupportedModelError, match=r"in the format mixed-precision or .*found 'dense'"):
        load(write(tmp_path / "x", {}, WORDS | {"format": "dense"}), progress=False)


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("weight_scale", None, "weight_scale.* no tensor"),
        ("weight_scale", np.ones((31, 1), np.float32), "weight_scale.* with 32 rows"),
        ("weight_scale", np.ones((32, 1), np.int32), "weight_scale.* with 32 rows"),
        ("weight_scale", np.ones((32, 0), np.float32), "weight_scale.* with 32 rows"),
        ("weight_scale", np.ones((32, 2), np.float32), "one scale an output, found several"),
        ("weight_scale", np.ones((32, 5), np.float32), "to divide 64 numbers"),
        ("weight", np.zeros((32, 15), np.uint8), r"of shape \[32, 64\].*found the shape \[32, 15\]"),
        ("weight", np.zeros((32, 64), np.uint8), r"of shape \[32, 64\]|found U8"),
        ("weight", np.zeros((32, 16), np.int8), r"of shape \[32, 64\].*found the shape \[32, 16\]"),
        ("weight", np.zeros((32, 4, 4), np.uint8), r"of shape \[32, 64\]"),
        ("input_activation_scale", np.zeros(2, np.float32), "to be one number"),
        ("output_activation_scale", np.int64(1), "to be one number"),
        ("bias", np.zeros(32, np.float32), "also"),
    ],
)
def test_parts_that_do_not_fit_are_typed_errors(tmp_path, part, value, says):
    published, _ = packed_and_dense()
    published[f"{DOWN}.{part}"] = value
    published = {name: tensor for name, tensor in published.items() if tensor is not None}
    with pytest.raises(TensorMismatchError, match=says):
        load(write(tmp_path / "x", published), progress=False)


def test_a_matrix_whose_parts_are_packed_otherwise_is_refused(tmp_path):
    published, dense = packed_and_dense()
    name = "model.layers.0.self_attn.k_proj.weight"
    published[name] = dense[name]
    for other in ("weight_scale", "input_activation_scale", "output_activation_scale"):
        published.pop(f"{name.removesuffix('weight')}{other}")
    with pytest.raises(TensorMismatchError, match="to be packed alike"):
        load(write(tmp_path / "x", published), progress=False)


@pytest.mark.long
def test_fields_that_are_anything_are_typed_errors(tmp_path):
    folder = write(tmp_path / "x", packed_and_dense()[0])
    path = folder / "config.json"
    values = [None, 0, -1, 1 << 63, "", "x", [], [[]], {}, True, 1.5]
    for name in [*SAID, "tie_word_embeddings", "hidden_size", "vocab_size", "head_dim"]:
        for value in values:
            said = SAID | ({name: value} if name in SAID else {})
            raw = tiny.CONFIG | {name: value} | {"quantization_config": said}
            path.write_text(json.dumps(raw))
            try:
                load(folder, progress=False).close()
            except GemmaJaxError as error:
                told = str(error)
                assert len(told) < 1000
