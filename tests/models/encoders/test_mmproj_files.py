"""A GGUF model with an mmproj file beside it sees and hears what the checkpoint does that both were made of."""

from __future__ import annotations

import os

import gguf
import numpy as np
import pytest

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.errors import CheckpointError, ConfigError, CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.media.medium import Picture, Sound
from langchain_gemma_jax.models.checkpoint.gguf_file_names import projectors
from langchain_gemma_jax.models.loading.load import load
from tests.models.encoders.make import converted, is_packed, write_encoders, write_text
from tests.models.vision.test_soft_tokens import BAR, apart, encoding, soft_tokens
from tests.parity.media_models import MODELS, PIXELS_OF, SECONDS, media_tensor, picture, plain_name, sound
from tests.seeing_folder import golden, write_seeing

every = pytest.mark.parametrize("name", [*MODELS])
GEMMA3 = "gemma-3-4b-vision"


def write(folder, name=GEMMA3, kind="F32", change=None, *, marks=True):
    """Write both files of a model, and return the text's."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny-Q8_0.gguf"
    write_text(path, name, marks=marks)
    write_encoders(folder / f"mmproj-tiny-{kind}.gguf", name, kind=kind, change=change)
    return path


@every
@pytest.mark.long
def test_soft_tokens_are_those_of_the_checkpoint_and_of_transformers(name, tmp_path):
    write_seeing(tmp_path / "folder", name)
    whole, packed = load(tmp_path / "folder", dtype="float32"), load(write(tmp_path / "gguf", name), dtype="float32")
    assert packed.encoders.loaded == {}, "nothing is read before a picture comes"
    assert packed.encoders.encoders == whole.encoders.encoders
    encode = encoding(packed)
    most = None if name == GEMMA3 else 70  # which the folder says of itself, and a file cannot
    for number in PIXELS_OF:
        shown = Picture(picture(name, 0, number))
        placed, other = (each.media.place(shown, max_soft_tokens=most) for each in (packed, whole))
        assert placed.digest == other.digest
        assert len(placed.before) == len(other.before), "the same marks, by the ids of another vocabulary"
        found = soft_tokens(packed, placed, encode)
        assert (found == soft_tokens(whole, other, encode)).all()
        assert apart(found, golden(name)[f"soft_0_{number}"]) <= BAR
    for number in range(len(SECONDS) if MODELS[name].config.get("audio_config") else 0):
        placed = packed.media.place(Sound(sound(name, 0, number)))
        found = soft_tokens(packed, placed, encode)
        assert apart(found, golden(name)[f"heard_0_{number}"]) <= BAR


@pytest.mark.parametrize("kind", ["BF16", "F16", "Q8_0"])
def test_each_number_is_the_one_that_is_stored(kind, tmp_path):
    for name in ("gemma-4-e4b-vision", "gemma-4-12b-unified"):
        model, packed = load(write(tmp_path / name, name, kind), dtype="float32"), 0
        with model.encoders.open() as read:
            for encoder in model.encoders.encoders:
                for tensor in (each for part in encoder.tensors().parts() for each in part.values()):
                    value = media_tensor(tensor.name, tensor.stored or tensor.shape, name, 0)
                    _, there = converted(plain_name(tensor.name), value, name)
                    if is_packed(there, kind):
                        packed += 1
                        stored = gguf.GGMLQuantizationType[kind]
                        there = gguf.dequantize(gguf.quantize(there, stored), stored).reshape(there.shape)
                    found = np.asarray(read(tensor), np.float32)
                    # What was put into another order is so in both: compared by its numbers alone.
                    assert np.allclose(np.sort(found, None), np.sort(unsoftened(tensor, there), None), 1e-5), tensor
        assert packed


def unsoftened(tensor, stored):
    return np.log(np.expm1(stored.astype(np.float64))) if tensor.name.endswith("per_dim_scale") else stored


def test_files_of_an_early_converter_have_two_names_exchanged(tmp_path):
    def exchange(_, tensors):
        for index in range(3):
            for end in ("weight", "bias"):
                up, down = (f"v.blk.{index}.ffn_{way}.{end}" for way in ("up", "down"))
                tensors[up], tensors[down] = tensors[down], tensors[up]

    models = [load(write(tmp_path / str(at), change=each), dtype="float32") for at, each in enumerate((None, exchange))]
    trees = [model.encoders.read(0, "float32", model.placement) for model in models]
    for one, other in zip(*(tree.layers for tree in trees), strict=True):
        assert all((np.asarray(one[key]) == np.asarray(other[key])).all() for key in one)


def width(said, _):
    said["clip.vision.projection_dim"] += 1


def another_kind(said, _):
    said["clip.projector_type"] = "gemma3nv"


def no_encoders(said, _):
    said["general.architecture"] = "llama"


def without(_, tensors):
    del tensors["v.blk.1.attn_q.weight"]


def another_shape(_, tensors):
    tensors["v.post_ln.weight"] = tensors["v.post_ln.weight"][:-1]


def one_more(_, tensors):
    tensors["v.blk.0.out_scale.weight"] = np.ones(1, np.float32)


def no_size(said, _):
    del said["clip.vision.patch_size"]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (width, CheckpointError, r"vectors of 33 numbers, and the text model's have 32.*text alone"),
        (another_kind, UnsupportedModelError, r"gemma3, gemma4v, gemma4uv.*found 'gemma3nv'.*text alone"),
        (no_encoders, UnsupportedModelError, "general.architecture 'clip'.*found 'llama'"),
        (without, CheckpointError, r"expected a tensor v\.blk\.1\.attn_q\.weight, found none"),
        (another_shape, CheckpointError, r"v\.post_ln\.weight of the shape \(24,\), found \(23,\)"),
        (one_more, CheckpointError, r"no others, found also v\.blk\.0\.out_scale\.weight"),
        (no_size, ConfigError, r"a value of clip\.vision\.patch_size, found none"),
    ],
)
def test_what_does_not_fit_is_said_unless_there_are_other_models_that_it_may_belong_to(change, error, match, tmp_path):
    path = write(tmp_path / "x", change=change)
    with pytest.raises(error, match=match):
        load(path)
    write_text(tmp_path / "x" / "tiny-IQ4_XS.gguf", GEMMA3)
    with pytest.raises(error, match=match):
        load(path)
    write_text(tmp_path / "x" / "other-Q8_0.gguf", GEMMA3)
    assert load(path).media is None
    write_encoders(tmp_path / "x" / "mmproj-fits-F32.gguf", GEMMA3)
    assert load(path).media is not None


def test_encoders_belong_to_a_generation_and_to_a_vocabulary(tmp_path):
    path = write(tmp_path / "x", marks=False)
    with pytest.raises(UnsupportedModelError, match="whose vocabulary has <start_of_image>"):
        load(path)
    write_encoders(tmp_path / "x" / "mmproj-tiny-F32.gguf", "gemma-4-31b-vision")
    with pytest.raises(CheckpointError, match="encoders of a gemma4, and the text model is a gemma3"):
        load(path)


def test_encoders_alone_are_no_model(tmp_path):
    write_encoders(path := tmp_path / "mmproj-tiny-F32.gguf", GEMMA3)
    with pytest.raises(UnsupportedModelError, match=r"image part of a model \(mmproj\)"):
        load(path)
    with pytest.raises(CheckpointError, match="mmproj"):
        load(tmp_path)


def test_what_was_written_to_meanwhile_is_not_read(tmp_path):
    path = write(tmp_path / "x")
    model = load(path)
    os.utime(tmp_path / "x" / "mmproj-tiny-F32.gguf", (1, 1))
    with pytest.raises(CorruptCheckpointError, match="written to or replaced"):
        model.encoders.read(0, "float32", model.placement)


def test_profiles_say_what_lies_beside_a_file(tmp_path):
    path = write(tmp_path / "x")
    for model in (path, path.parent):
        profile = ChatGemmaJax(model=str(model)).profile
        assert (profile["image_inputs"], profile["audio_inputs"]) == (True, False)
    write_encoders(tmp_path / "x" / "mmproj-tiny-F32.gguf", "gemma-4-e4b-vision")
    assert ChatGemmaJax(model=str(path)).profile["audio_inputs"]
    (tmp_path / "x" / "mmproj-tiny-F32.gguf").write_bytes(b"GGUF")
    assert not ChatGemmaJax(model=str(path)).profile["image_inputs"]


def test_which_of_several_is_taken():
    precise = ["mmproj-F32.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"]
    assert projectors(precise, "gemma-3-4b-it-Q4_K_M.gguf") == [precise[1], precise[2], precise[0]]
    several = ["mmproj-medgemma-4b-it-F16.gguf", "mmproj-gemma-3-4b-it-Q8_0.gguf"]
    assert projectors(several, "gemma-3-4b-it-Q4_K_M.gguf")[0] == several[1]
    assert projectors(several, "medgemma-4b-it-Q4_K_M.gguf")[0] == several[0]
    assert projectors(["a/mmproj-F16.gguf"], "gemma.gguf") == [] != projectors(["a/mmproj-F16.gguf"], "a/gemma.gguf")
