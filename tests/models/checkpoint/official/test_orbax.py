from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys

import jax
import ml_dtypes
import numpy as np
import pytest
import sentencepiece

from langchain_gemma_jax import load_model
from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    ConfigError,
    CorruptCheckpointError,
    TensorMismatchError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.official import zarr_rows
from langchain_gemma_jax.models.checkpoint.official.orbax import OrbaxSource, find_orbax, open_orbax
from langchain_gemma_jax.models.configuration import catalog
from langchain_gemma_jax.models.recipes import Recipe

# --- The shapes in which one model's tree is found on disk -----------------------------------------------------------


def nested(tree):
    return tree


def under_params(tree):
    return {"params": tree}


def training_state(tree):
    doubled = jax.tree.map(lambda array: array * 2, tree)
    return {"params": tree, "opt_state": [{"mu": doubled}], "step": np.asarray(7), "collections": {}}


def flat(tree):
    """As it was published: paths for keys, and a last ``w`` where the nested tree has none."""
    out = {}

    def visit(path, node):
        for name, value in node.items():
            if isinstance(value, dict):
                visit((*path, name), value)
            elif name in {"gating_einsum", "linear"}:
                out["/".join((*path, name))] = {"w": value}
            else:
                out.setdefault("/".join(path), {})[name] = value

    visit(("transformer",), tree)
    return out


def with_images_and_sound(tree):
    embedder = tree["embedder"] | {
        "mm_input_projection": {"w": np.ones((3, 2), np.float32)},
        "mm_soft_embedding_norm": {"scale": np.ones(3, np.float32)},
        "audio_input_projection": {"w": np.ones((3, 2), np.float32)},
    }
    tower = {"siglip_encoder": {"pos_embedding": np.ones((1, 2, 3), np.float32)}}
    return tree | {"embedder": embedder, "vision_encoder": tower, "audio_encoder": {"w": np.ones(2, np.float32)}}


def flat_with_images(tree):
    return flat(tree) | {"SigLiPFromPatches_0/siglip_encoder/embedding": {"kernel": np.ones(3, np.float32)}}


def stacked(tree, types=2):
    """Layers of one attention type in one array, as ``stacked_layers/attention_type_0/...``."""
    out, rows = {}, {}
    for path, leaves in flat(tree).items():
        layer = re.fullmatch(r"transformer/layer_(\d+)/(.+)", path)
        if layer is None:
            out[path] = leaves
            continue
        key = f"transformer/stacked_layers/attention_type_{int(layer[1]) % types}/{layer[2]}"
        for name, array in leaves.items():
            rows.setdefault((key, name), []).append(array)
    for (key, name), arrays in rows.items():
        out.setdefault(key, {})[name] = np.stack(arrays)
    return out


def save_to(folder, tree, **options):
    import orbax.checkpoint as ocp

    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as checkpointer:
        checkpointer.save(folder, tree)
    return folder


@pytest.fixture
def save(tmp_path):
    """``save(tree, **options of Orbax)``: the folder that it is saved in."""
    return lambda tree, **options: save_to(tmp_path / "checkpoint", tree, **options)


@pytest.fixture
def load(put, gemma3):
    """``load(folder, config=the tiny Gemma 3)``: the parameters of the checkpoint there, in numpy."""

    def load(folder, config=gemma3):
        config, source, naming = open_orbax(folder, config)
        with source:
            return put(source, naming, config)

    return load


@pytest.fixture(params=["streamed", "by TensorStore"])
def _each_reader(request, monkeypatch):
    """Tiny arrays are TensorStore's; this has them read in both ways."""
    if request.param == "streamed":
        monkeypatch.setattr(zarr_rows, "_SMALL", 0)
        monkeypatch.setattr(zarr_rows, "_BLOCK_BYTES", 100)


@pytest.fixture(scope="module")
def tree(gemma3, official_tree):
    return official_tree(gemma3)


@pytest.fixture
def expected(gemma3, tree, put_by_hf_names):
    return put_by_hf_names(gemma3, tree)


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tree):
    """A Gemma 3 on disk. Tests that break it take a copy."""
    return save_to(tmp_path_factory.mktemp("orbax") / "checkpoint", flat(tree))


@pytest.fixture
def broken(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "broken")


@pytest.fixture(scope="module")
def tokenizer_model():
    """A SentencePiece model like Gemma's that knows little but bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the tool answers", "the model reads"] * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=300,
        byte_fallback=True,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    return model.getvalue()


def largest_file(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "_METADATA")
    return max(files, key=lambda path: path.stat().st_size)


# --- What can be read ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_each_reader")
def test_each_kind_of_model_is_read(tiny, official_tree, save, load, put_by_hf_names):
    tree = official_tree(tiny)

    found = load(save(flat(tree)), tiny)

    jax.tree.map(np.testing.assert_array_equal, found, put_by_hf_names(tiny, tree))


@pytest.mark.usefixtures("_each_reader")
@pytest.mark.parametrize(
    "shape", [nested, under_params, training_state, with_images_and_sound, flat_with_images, stacked]
)
def test_each_shape_of_a_tree_is_read(shape, tree, save, load, expected):
    found = load(save(shape(tree)))

    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.usefixtures("_each_reader")
@pytest.mark.parametrize(
    "options", [{"use_ocdbt": False}, {"use_zarr3": True}, {"use_ocdbt": False, "use_zarr3": True}]
)
def test_each_way_to_store_arrays_is_read(options, tree, save, load, expected):
    found = load(save(flat(tree), **options))

    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_bfloat16_keeps_its_dtype_and_its_bits(gemma3, official_tree, save):
    tree = official_tree(gemma3, dtype=ml_dtypes.bfloat16)
    _, source, _ = open_orbax(save(tree), gemma3)
    with source:
        embedding = source.read("embedder/input_embedding")

    assert source.dtype("embedder/input_embedding") == "bfloat16"
    np.testing.assert_array_equal(embedding.view(np.uint16), tree["embedder"]["input_embedding"].view(np.uint16))


@pytest.mark.usefixtures("_each_reader")
def test_a_layer_of_a_stacked_checkpoint_is_one_of_its_rows(tree, save):
    with OrbaxSource(save(stacked(tree))) as source:
        found = source.read("layer_3/mlp/linear")

        assert source.shape("layer_3/mlp/linear") == found.shape == (20, 12)
    np.testing.assert_array_equal(found, tree["layer_3"]["mlp"]["linear"])


def test_metadata_files_of_orbax_are_not_needed(broken, load, expected):
    for name in ("_METADATA", "_CHECKPOINT_METADATA"):
        (broken / name).unlink()

    jax.tree.map(np.testing.assert_array_equal, load(broken), expected)


def test_nothing_is_unpickled_or_imported_to_read_a_checkpoint(saved):
    program = f"""
import sys
from pathlib import Path
from langchain_gemma_jax.models.configuration import catalog
from langchain_gemma_jax.models.checkpoint.official import zarr_rows
from langchain_gemma_jax.models.checkpoint.official.orbax import OrbaxSource
loaded = set(sys.modules)
sys.addaudithook(lambda event, arguments: event == "pickle.find_class" and sys.exit("unpickled"))
with OrbaxSource(Path({str(saved)!r})) as source:
    source.read("embedder/input_embedding")
print(*sorted({{"orbax", "jax", "flax", "tensorflow"}} & set(sys.modules) - loaded))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


# --- Where a checkpoint is -------------------------------------------------------------------------------------------


@pytest.fixture
def download(saved, tmp_path, tokenizer_model):
    """A download from Kaggle: a tokenizer, and a checkpoint in a folder next to it."""
    shutil.copytree(saved, tmp_path / "gemma3-it")
    (tmp_path / "tokenizer.model").write_bytes(tokenizer_model)
    return tmp_path


def test_a_checkpoint_is_found_in_a_download(download):
    assert find_orbax(download) == download / "gemma3-it"
    assert find_orbax(download / "gemma3-it") == download / "gemma3-it"


def test_several_checkpoints_in_a_folder_are_an_error_that_names_them(saved, tmp_path):
    for name in ("1000", "2000"):
        shutil.copytree(saved, tmp_path / name)

    with pytest.raises(CheckpointNotFoundError, match=r"found 1000, 2000\. Give the path"):
        find_orbax(tmp_path)


@pytest.mark.parametrize(
    ("name", "found"), [("absent", "no folder"), ("empty", "an empty folder"), ("notes", "a file")]
)
def test_a_folder_without_a_checkpoint(name, found, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").touch()

    assert find_orbax(tmp_path / name) is None
    with pytest.raises(CheckpointNotFoundError, match=rf"manifest\.ocdbt or _METADATA.*found {found}"):
        open_orbax(tmp_path / name)


@pytest.mark.parametrize("given", [".", "gemma3-it"])
def test_a_download_is_loaded_with_the_tokenizer_beside_it(given, download, gemma3, expected, monkeypatch):
    monkeypatch.setattr(catalog, "known", lambda: {"this": gemma3})

    with load_model(download / given, recipe=Recipe(dtype="float32")) as model:
        jax.tree.map(np.testing.assert_array_equal, model.params, expected)
        assert model.config == gemma3
        assert model.tokenizer.decode(model.tokenizer.encode_text("Grüezi, 札幌")) == "Grüezi, 札幌"


# --- Which model it is -----------------------------------------------------------------------------------------------


def test_without_a_configuration_the_shapes_decide(saved, gemma3, monkeypatch):
    other = gemma3.replace(width=2 * gemma3.width)
    padded = gemma3.replace(vocab_size=gemma3.vocab_size + 64)
    monkeypatch.setattr(catalog, "known", lambda: {"other": other, "this": padded})

    config, _, _ = open_orbax(saved)

    assert config == gemma3  # with the rows that the checkpoint's own vocabulary has


def test_a_size_that_is_not_known_is_described(saved):
    with pytest.raises(
        ConfigError, match=r"a Gemma 3 of 6 layers, width 12, 4 heads of 6.*gemma-3-270m.*put a config\.json"
    ):
        open_orbax(saved)


def test_a_configuration_that_leaves_arrays_out_is_refused(saved, gemma3):
    with pytest.raises(TensorMismatchError, match=r"of 5 layers, and no more.*layer_5/attn"):
        open_orbax(saved, gemma3.replace(layers=gemma3.layers[:5]))


def test_another_width_is_a_wrong_shape(saved, gemma3, load):
    with pytest.raises(TensorMismatchError, match=r"'embedder/input_embedding' of shape \[30, 14\].*\[30, 12\]"):
        load(saved, gemma3.replace(width=14))


def test_an_absent_array_is_named(gemma3, official_tree, save, load):
    tree = official_tree(gemma3)
    del tree["layer_2"]["attn"]["kv_einsum"]

    with pytest.raises(TensorMismatchError, match=r"layer_2/attn/kv_einsum.*found no tensor"):
        load(save(tree))


# --- What is damaged -------------------------------------------------------------------------------------------------


def test_a_lost_or_cut_manifest(broken, gemma3):
    manifest = broken / "manifest.ocdbt"
    manifest.write_bytes(manifest.read_bytes()[:40])
    with pytest.raises(CorruptCheckpointError, match=r"expected a list of arrays, found DATA_LOSS"):
        open_orbax(broken, gemma3)

    manifest.unlink()
    with pytest.raises(CorruptCheckpointError, match=r"expected arrays, found none\. The download, or the save"):
        open_orbax(broken, gemma3)


def test_a_lost_index(broken, gemma3):
    shutil.rmtree(broken / "d")

    with pytest.raises(CorruptCheckpointError, match=r"expected a list of arrays, found NOT_FOUND"):
        open_orbax(broken, gemma3)


@pytest.mark.usefixtures("_each_reader")
@pytest.mark.parametrize("share", [0, 0.1, 0.5])
def test_a_cut_data_file(share, broken, load):
    data = largest_file(broken)
    os.truncate(data, int(data.stat().st_size * share))

    with pytest.raises(CorruptCheckpointError, match=r"expected \w+/.* in float32, found \w+: .*probably incomplete"):
        load(broken)


@pytest.mark.usefixtures("_each_reader")
def test_a_lost_data_file(broken, load):
    shutil.rmtree(broken / "ocdbt.process_0")

    with pytest.raises(CorruptCheckpointError, match="probably incomplete"):
        load(broken)


@pytest.mark.usefixtures("_each_reader")
@pytest.mark.parametrize("use_zarr3", [False, True])
def test_a_lost_file_of_a_plain_folder_is_not_read_as_zeros(use_zarr3, tree, save, load):
    folder = save(flat(tree), use_ocdbt=False, use_zarr3=use_zarr3)
    largest_file(folder).unlink()

    with pytest.raises(CorruptCheckpointError, match="NOT_FOUND"):
        load(folder)


def test_a_header_that_is_no_header(gemma3, tree, save):
    folder = save(flat(tree), use_ocdbt=False)
    next(folder.rglob(".zarray")).write_text("[]")

    with pytest.raises(CorruptCheckpointError, match="expected arrays in Zarr"):
        open_orbax(folder, gemma3)


def test_a_header_that_promises_too_much_allocates_nothing(tree, save, load):
    folder = save(flat(tree), use_ocdbt=False)
    header = folder / "transformer" / "embedder.input_embedding" / ".zarray"
    promised = json.loads(header.read_text()) | {"shape": [1 << 40, 12], "chunks": [1 << 40, 12]}
    header.write_text(json.dumps(promised))

    with pytest.raises(TensorMismatchError, match=r"input_embedding.*\[1099511627776, 12\]"):
        load(folder)


@pytest.mark.parametrize("use_zarr3", [False, True])
def test_a_chunk_that_is_larger_than_its_array_allocates_nothing(use_zarr3, tree, gemma3, save):
    folder = save(flat(tree), use_ocdbt=False, use_zarr3=use_zarr3)
    header = folder / "transformer" / "embedder.input_embedding" / ("zarr.json" if use_zarr3 else ".zarray")
    text = header.read_text()
    if use_zarr3:
        promised = re.sub(r'("chunk_shape": ?\[)30', rf"\g<1>{1 << 40}", text)
    else:
        promised = re.sub(r'("chunks": ?\[)30', rf"\g<1>{1 << 40}", text)
    assert promised != text
    header.write_text(promised)

    with pytest.raises(CorruptCheckpointError, match=r"input_embedding \[30, 12\].*chunks of \[1099511627776, 12\]"):
        open_orbax(folder, gemma3)


def test_a_save_that_was_not_finished(saved, tmp_path, gemma3):
    folder = shutil.copytree(saved, tmp_path / "step.orbax-checkpoint-tmp-1700000000")

    with pytest.raises(CorruptCheckpointError, match="still writing"):
        open_orbax(folder, gemma3)


# --- Links -----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_a_link_out_of_the_folder(broken, tmp_path, gemma3):
    data = largest_file(broken)
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafeCheckpointError, match="elsewhere"):
        open_orbax(broken, gemma3)


def test_a_folder_that_is_a_link(broken, tmp_path, gemma3):
    (broken / "d").rename(tmp_path / "elsewhere")
    (broken / "d").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafeCheckpointError, match="elsewhere"):
        open_orbax(broken, gemma3)


def test_the_links_of_the_hubs_own_cache_are_followed(saved, tmp_path, load):
    repository = tmp_path / "models--google--gemma-flax"
    (repository / "blobs").mkdir(parents=True)
    folder = repository / "snapshots" / "0123abcd" / "2b"
    for number, file in enumerate(path for path in saved.rglob("*") if path.is_file()):
        blob = shutil.copy(file, repository / "blobs" / f"{number:040}")
        link = folder / file.relative_to(saved)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)

    assert load(folder)["embed"].shape == (30, 12)
    assert find_orbax(folder.parent) == folder


# --- Weights that cannot be used as they are -------------------------------------------------------------------------


def test_quantized_weights(gemma3, official_tree, save):
    tree = official_tree(gemma3)
    tree["layer_0"]["mlp"]["linear"] = np.ones((20, 12), np.int8)

    with pytest.raises(UnsupportedModelError, match=r"quantized weights \(layer_0/mlp/linear, int8\)"):
        open_orbax(save(tree), gemma3)
