from __future__ import annotations

import json
import os
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ConfigError,
    CorruptCheckpointError,
    GemmaJaxError,
    TensorMismatchError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.official import orbax
from langchain_gemma_jax.models.configuration.abstract import Layout, abstract, walk
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.seams.params import leaves

REFERENCE = json.loads(Path(__file__).with_name("reference_names.json").read_text())


def write(folder, kind="gemma3_text", dtype=np.float32):
    """A checkpoint with the names, shapes and config.json that transformers gives such a model."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(REFERENCE[kind]["config"]))
    chance = np.random.default_rng(0)
    shapes = REFERENCE[kind]["tensors"]
    tensors = {name: np.asarray(chance.standard_normal(shape), dtype) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    return tensors


@pytest.mark.parametrize("kind", REFERENCE)
def test_what_transformers_saves_is_read_to_the_last_array(tmp_path, kind):
    stored = write(tmp_path, kind, ml_dtypes.bfloat16)
    config, source, naming = open_folder(tmp_path)
    with source:
        params = place(source, naming, config, "bfloat16", Layout(), jax.devices()[0])
    for (path, spec), array in zip(walk(abstract(config)), leaves(params), strict=True):
        assert (array.shape, array.dtype.name) == (spec.shape, spec.dtype), path
    prefix = next(name for name in stored if name.endswith("embed_tokens.weight")).removesuffix("embed_tokens.weight")
    q, k = (stored[f"{prefix}layers.1.self_attn.{name}_proj.weight"] for name in "qk")
    qkv = np.asarray(params["layers"][1]["qkv"])
    np.testing.assert_array_equal(qkv[: len(q) + len(k)], np.concatenate([q, k]))
    final = stored[f"{prefix}norm.weight"].astype(np.float32)
    offset = 0 if kind.startswith("gemma4") else 1
    np.testing.assert_array_equal(np.asarray(params["final_norm"]), offset + final)


def test_shards(tmp_path):
    stored = write(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    names, files = sorted(stored), ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    for part, file in enumerate(files):
        save_file({name: stored[name] for name in names[part::2]}, tmp_path / file)
    index = {name: files[position % 2] for position, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    _, source, _ = open_folder(tmp_path)
    with source:
        assert sorted(source.names()) == names


class TestOrbax:
    """The calls of open_orbax: when they come, and for what. Its results are tested with it."""

    @pytest.fixture
    def asked(self, monkeypatch):
        calls = []
        monkeypatch.setattr(orbax, "open_orbax", lambda *args: calls.append(args) or ("config", "source", "naming"))
        return calls

    @pytest.mark.parametrize("inner", [".", "gemma3-1b-it"])
    def test_the_folder_or_one_in_it(self, tmp_path, asked, inner):
        (tmp_path / inner).mkdir(exist_ok=True)
        (tmp_path / inner / "_METADATA").write_text("{}")
        (tmp_path / "optimizer.pkl").touch()
        assert open_folder(tmp_path) == ("config", "source", "naming")
        assert asked == [(tmp_path / inner, None)]

    def test_a_config_json_beside_it_says_what_it_is(self, tmp_path, asked):
        write(tmp_path)
        (tmp_path / "model.safetensors").unlink()
        (tmp_path / "_METADATA").write_text("{}")
        open_folder(tmp_path)
        assert asked[0][1].generation == "gemma3"

    def test_safetensors_come_first(self, tmp_path, asked):
        write(tmp_path)
        (tmp_path / "_METADATA").write_text("{}")
        open_folder(tmp_path)[1].close()
        assert asked == []


class TestWhatIsNotAModel:
    def test_no_folder(self, tmp_path):
        with pytest.raises(CheckpointNotFoundError, match=r"none: expected a model's folder, found nothing\.\n"):
            open_folder(tmp_path / "none")

    def test_a_file(self, tmp_path):
        write(tmp_path)
        with pytest.raises(CheckpointNotFoundError, match=r"found a file\. Give the folder that the file is in\."):
            open_folder(tmp_path / "model.safetensors")

    def test_an_empty_folder_says_what_was_looked_for(self, tmp_path):
        with pytest.raises(CheckpointNotFoundError) as caught:
            open_folder(tmp_path)
        assert "config.json with model.safetensors" in caught.value.expected
        assert "Orbax" in caught.value.expected
        assert caught.value.found == "an empty folder"

    def test_something_else_says_what_is_there(self, tmp_path):
        for name in ["model.gguf", "README.md", *(f"{i}.txt" for i in range(10))]:
            (tmp_path / name).touch()
        with pytest.raises(CheckpointNotFoundError, match=r"found 0\.txt, 1\.txt, .* and 4 more"):
            open_folder(tmp_path)

    def test_weights_without_a_configuration(self, tmp_path):
        write(tmp_path)
        (tmp_path / "config.json").unlink()
        with pytest.raises(CheckpointNotFoundError, match=r"config\.json: expected a file, found nothing"):
            open_folder(tmp_path)

    def test_a_configuration_without_weights(self, tmp_path):
        write(tmp_path)
        (tmp_path / "model.safetensors").unlink()
        with pytest.raises(CheckpointNotFoundError, match=r"found config\.json"):
            open_folder(tmp_path)

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"model_type": "gemma", "model_type": "gemma2"}', "\ud800"])
    def test_a_configuration_that_is_no_json_object(self, tmp_path, text):
        write(tmp_path)
        (tmp_path / "config.json").write_bytes(text.encode(errors="surrogatepass"))
        with pytest.raises(CorruptCheckpointError, match=r"config\.json: expected a JSON object"):
            open_folder(tmp_path)

    @pytest.mark.parametrize("config", [{}, {"model_type": "llama"}, {"model_type": "gemma3n"}, {"model_type": 7}])
    def test_another_architecture(self, tmp_path, config):
        write(tmp_path)
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises((ConfigError, UnsupportedModelError)):
            open_folder(tmp_path)

    def test_an_adapter_is_not_left_out_silently(self, tmp_path):
        write(tmp_path)
        (tmp_path / "adapter_config.json").write_text("{}")
        with pytest.raises(UnsupportedModelError, match=r"adapter_config\.json: .*merge_and_unload"):
            open_folder(tmp_path)

    def test_the_configuration_of_another_size(self, tmp_path):
        write(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        config |= {"num_hidden_layers": 2, "layer_types": config["layer_types"][:2]}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(TensorMismatchError, match=r"of 2 layers, and no others, found also 'model\.layers\.2\."):
            open_folder(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "."])
    def test_files_that_may_not_be_read(self, tmp_path, name):
        write(tmp_path / "model")
        (tmp_path / "model" / name).chmod(0)
        try:
            with pytest.raises(CheckpointError, match="Permission denied"):
                open_folder(tmp_path / "model")
        finally:
            (tmp_path / "model" / name).chmod(0o700)

    def test_a_disk_that_fails(self, tmp_path, monkeypatch):
        write(tmp_path)

        def fail(self):
            raise OSError(5, "Input/output error", str(self))

        monkeypatch.setattr(Path, "read_bytes", fail)
        with pytest.raises(CheckpointError, match=r"config\.json: expected files that can be read, found Input/output"):
            open_folder(tmp_path)


class TestPickles:
    @pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt", ".pkl", ".BIN"])
    def test_nothing_but_pickles_is_refused(self, tmp_path, suffix):
        (tmp_path / "config.json").write_text(json.dumps(REFERENCE["gemma"]["config"]))
        (tmp_path / f"pytorch_model{suffix}").write_bytes(b"never opened")
        with pytest.raises(UnsafeCheckpointError, match=rf"pickles only: pytorch_model{suffix}\. .*none was opened"):
            open_folder(tmp_path)

    def test_beside_safetensors_they_do_not_matter(self, tmp_path):
        write(tmp_path)
        (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
        _, source, _ = open_folder(tmp_path)
        source.close()

    def test_broken_safetensors_are_not_replaced_by_a_pickle(self, tmp_path):
        write(tmp_path)
        (tmp_path / "model.safetensors").write_bytes(b"")
        (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
        with pytest.raises(CorruptCheckpointError):
            open_folder(tmp_path)


class TestLinks:
    def test_a_configuration_from_elsewhere(self, tmp_path):
        write(tmp_path / "model")
        (tmp_path / "model" / "config.json").rename(tmp_path / "config.json")
        (tmp_path / "model" / "config.json").symlink_to("../config.json")
        with pytest.raises(UnsafeCheckpointError, match="inside the model's folder"):
            open_folder(tmp_path / "model")

    def test_the_hubs_cache(self, tmp_path):
        snapshot = tmp_path / "models--org--name" / "snapshots" / "c0ffee"
        snapshot.mkdir(parents=True)
        write(tmp_path / "models--org--name" / "blobs")
        for name in ("config.json", "model.safetensors"):
            (snapshot / name).symlink_to(f"../../blobs/{name}")
        _, source, _ = open_folder(snapshot)
        source.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists what is mapped")
def test_nothing_stays_mapped_after_a_failure(tmp_path):
    write(tmp_path)
    save_file({"a": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(GemmaJaxError) as caught:
        open_folder(tmp_path)
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert caught.traceback, "while the error, and every frame of it, is still held"
