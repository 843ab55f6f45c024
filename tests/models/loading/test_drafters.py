"""Drafters beside models: where they are found, how they are stored, and the errors of those that do not fit."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    ConfigError,
    InputError,
    TensorMismatchError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.hf_names import TOKEN_ORDER
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.drafters import drafter_folder_of
from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.loading.open_model import open_source
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from tests.goldens.drafter_files import write_drafter, write_target
from tests.models.loading.tiny_folder import tensors, write_tokenizer
from tests.parity.drafters import DRAFTERS

VOCABULARY = 264
GROUPED = "grouped tokens"


@pytest.fixture
def target(tmp_path):
    folder = write_target(GROUPED, tmp_path / "gemma", VOCABULARY)
    write_tokenizer(folder)
    return folder


def drafter_at(folder, name=GROUPED, **changes):
    return write_drafter(name, folder, VOCABULARY, **changes)


def test_a_drafter_is_found_in_the_models_folder_or_beside_it_or_where_it_is_said_to_be(target, tmp_path):
    with load(target) as model:
        assert model.drafter is None
    named = drafter_at(tmp_path / "elsewhere")
    with load(target, drafter=str(named)) as model:
        assert model.drafter.folder == named
    for place in (target.with_name("gemma-assistant"), target / "assistant"):
        drafter_at(place)
        with load(target) as model:
            assert model.drafter.folder == place
            assert model.drafter.params["order"].shape == (4, VOCABULARY // 4)
            nbytes = model.drafter.nbytes
        assert all(array.is_deleted() for array in jax.tree.leaves(model.drafter.params))
        assert model.drafter.nbytes == nbytes
    with load(target, drafter="off") as model:
        assert model.drafter is None


def test_a_file_has_the_drafter_that_is_called_like_it(tmp_path):
    file = tmp_path / "gemma.gguf"
    file.touch()
    drafter_at(tmp_path / "assistant")
    assert drafter_folder_of(file) is None, "it may belong to any of the files here"
    assert drafter_folder_of(tmp_path) == tmp_path / "assistant"
    assert drafter_folder_of(file) is None
    assert drafter_folder_of(file.with_name("other.gguf")) is None
    found = drafter_at(tmp_path / "gemma-assistant")
    assert drafter_folder_of(file) == found
    (found / "config.json").write_text('{"model_type": "gemma4"}')
    assert drafter_folder_of(file) is None, "something else that is called so"


def test_a_drafter_is_packed_like_its_target(target):
    drafter_at(target / "assistant")
    with load(target, dtype="float32", weights="int8") as model:
        assert model.drafter.drafter.recipe == model.recipe
        assert isinstance(model.drafter.params["from_target"], BlockMatrix)
        assert isinstance(model.params["embed"], BlockMatrix)
    with load(target, dtype="bfloat16") as model:
        assert model.drafter.params["from_target"].dtype == "bfloat16"


def test_a_closed_model_gets_its_drafter_back(target, tmp_path):
    place = drafter_at(tmp_path / "elsewhere")
    model = load(target, drafter=str(place))
    before, mine = np.asarray(model.drafter.params["from_target"]), model.drafter
    model.close()
    with load_again(model) as again:
        model.reopen(again)
        np.testing.assert_array_equal(np.asarray(mine.params["from_target"]), before)


def test_a_drafter_for_another_model_is_refused_and_both_are_named(target, tmp_path):
    text = DRAFTERS[GROUPED]["text_config"]
    others = {
        r"width \(backbone_hidden_size\) is 32; found .* is 64": {"backbone_hidden_size": 64},
        r"vocabulary \(vocab_size\) is 264; found .* is 268": {"text_config": {**text, "vocab_size": 268}},
        r"head_dim of local layers is 8; found .* is 4": {"text_config": {**text, "vocab_size": 264, "head_dim": 4}},
        r"kv_heads of local layers is 2; found .* is 1": {
            "text_config": {**text, "vocab_size": 264, "num_key_value_heads": 1}
        },
        r"window of local layers is 8; found .* is 9": {
            "text_config": {**text, "vocab_size": 264, "sliding_window": 9}
        },
    }
    for number, (said, changes) in enumerate(others.items()):
        place = drafter_at(tmp_path / str(number), **changes)
        with pytest.raises(ConfigError, match=f"{place.name}.*: expected a drafter for 'gemma', whose {said}") as error:
            load(target, drafter=str(place))
        assert 'drafter="off"' in str(error.value)


def test_an_older_gemma_has_no_drafters(folder, tmp_path):
    save_file(tensors(), folder / "model.safetensors")
    place = drafter_at(tmp_path / "drafter")
    with pytest.raises(
        ConfigError, match="whose generation is gemma; found one for a model whose generation is gemma4"
    ):
        load(folder, drafter=str(place))


def test_files_that_are_no_drafter_or_a_damaged_one_are_refused(target, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointNotFoundError, match=r"expected a drafter: config.json and model.safetensors"):
        load(target, drafter=str(tmp_path / "empty"))
    (tmp_path / "drafter.gguf").touch()
    with pytest.raises(UnsupportedModelError, match=r"expected the folder of a drafter, .*, found a file"):
        load(target, drafter=str(tmp_path / "drafter.gguf"))
    with pytest.raises(UnsupportedModelError, match="expected a drafter, with a model_type of gemma4_assistant or"):
        load(target, drafter=str(target))
    with pytest.raises(UnsupportedModelError, match="found a drafter of another Gemma 4, which cannot"):
        load(drafter_at(tmp_path / "drafter"))
    changes = {
        "drafters are read unquantized": {"quantization_config": {"bits": 4}},
        "num_centroids to be a divisor of vocab_size=264, found 5": {"num_centroids": 5},
        "centroid_intermediate_top_k to be from 1 to 4, found 9": {"centroid_intermediate_top_k": 9},
        "backbone_hidden_size to be from 1": {"backbone_hidden_size": 0},
        "model_type to be 'gemma4_text'": {"text_config": {"model_type": "gemma3_text"}},
        "num_kv_shared_layers to be 4, as": {
            "text_config": {**DRAFTERS[GROUPED]["text_config"], "num_kv_shared_layers": 2}
        },
        "drafters have no experts": {"text_config": {**DRAFTERS[GROUPED]["text_config"], "enable_moe_block": True}},
    }
    for number, (said, change) in enumerate(changes.items()):
        with pytest.raises(InputError, match=said):
            load(target, drafter=str(drafter_at(tmp_path / str(number), **change)))


def test_tensors_that_are_missing_or_wrong_are_refused(target, tmp_path):
    place = drafter_at(tmp_path / "drafter")
    whole = load_file(place / "model.safetensors")

    def refused(said, **changes):
        found = {name: each for name, each in {**whole, **changes}.items() if each is not None}
        save_file(found, place / "model.safetensors")
        with pytest.raises(TensorMismatchError, match=said):
            load(target, drafter=str(place))

    refused("a tensor 'pre_projection.weight'", **{"pre_projection.weight": None})
    refused("'post_projection.weight' of shape", **{"post_projection.weight": np.zeros((3, 3), np.float32)})
    refused(f"a tensor {TOKEN_ORDER} of 264 whole numbers, found none", **{TOKEN_ORDER: None})
    refused(f"a tensor {TOKEN_ORDER} of 264 whole numbers, found float32", **{TOKEN_ORDER: np.zeros(264, np.float32)})
    refused(f"{TOKEN_ORDER} to have ids from 0 to 263, found 264", **{TOKEN_ORDER: np.arange(1, 265)})
    refused("and no others, found also 'surplus.weight'", **{"surplus.weight": np.zeros(3, np.float32)})


def test_a_divided_model_has_no_drafter(target, tmp_path):
    """Found by itself it is left where it is; named, it is refused."""
    place, two = drafter_at(tmp_path / "drafter"), DeviceMesh((jax.devices()[0], jax.devices()[0]))
    drafter_at(target / "assistant")
    with open_source(target, HowToLoad()) as opened:
        assert plan_model(opened, HowToLoad(), Devices(two)).drafter is None
    with (
        open_source(target, HowToLoad(drafter=str(place))) as opened,
        pytest.raises(UnsupportedModelError, match=r"'gemma' on one device, .* found it divided among 2"),
    ):
        plan_model(opened, HowToLoad(), Devices(two))


def test_torchax_models_take_no_drafter():
    with pytest.raises(InputError, match=r'drafter=.*: a model "torchax:..." takes none'):
        load("torchax:some/model", drafter="some/drafter")
