"""A GGUF model with an mmproj file beside it sees and hears what the checkpoint does that both were made of."""

from __future__ import annotations

import os

import numpy as np
import pytest

from langchain_gemma_jax.errors import CheckpointError, ConfigError, CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.media.medium import Picture, Sound
from langchain_gemma_jax.models.loading.load import load
from tests.models.encoders.make import GEMMA3, write, write_encoders, write_text
from tests.models.vision.soft_tokens import BAR, apart, encoding, soft_tokens
from tests.parity.media_models import MODELS, PIXELS_OF, SECONDS, picture, sound
from tests.seeing_folder import golden, write_seeing

every = pytest.mark.parametrize("name", [*MODELS])


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
