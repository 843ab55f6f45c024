"""Encoders in mmproj files, with made-up weights: what llama.cpp makes of the same files is what we make of them."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from langchain_gemma_jax.media.medium import Picture, Sound
from langchain_gemma_jax.models.loading.load import load
from tests.models.encoders.make import write_encoders, write_text
from tests.models.vision.soft_tokens import apart, encoding, soft_tokens
from tests.parity.media_models import MODELS, sound
from tests.real.real_model import ROOT

PYTHON = ROOT / ".envs" / "llama" / "bin" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="llama.cpp is not here: scripts/real --all compiles it"),
]
SIZES = {"gemma-3-4b-vision": ((42, 42),)}  # that neither side has to resize
SEVENTY_TOKENS = ((84, 120), (120, 84))
HEARS = "gemma-4-e4b-vision"  # the frames of the unified one are of another length, which is fixed there
BAR = {Picture: 2e-2, Sound: 5e-2}  # of the spread: llama.cpp takes products, gates and spectrograms in fewer bits


def made_by_llama_cpp(folder, shown):
    """Return the soft tokens of pictures and sounds."""
    script = ROOT / "tests" / "real" / "reference_mmproj.py"
    command = [PYTHON, script, folder / "tiny.gguf", folder / "mmproj-tiny.gguf"]
    given = json.dumps([each.tolist() for each in shown])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [np.array(each) for each in json.loads(done.stdout)]


def with_its_own_gelu(said, _):
    """Converters leave it out for Gemma 4, and llama.cpp takes a coarser one then. Here the same is compared."""
    said["clip.use_gelu"] = True


@pytest.mark.parametrize("name", [*MODELS])
def test_soft_tokens_of_a_file_are_those_of_llama_cpp(name, tmp_path):
    write_text(tmp_path / "tiny.gguf", name)
    write_encoders(tmp_path / "mmproj-tiny.gguf", name, change=with_its_own_gelu)
    rng = np.random.default_rng(0)
    shown = [rng.integers(0, 256, (*size, 3)).astype(np.uint8) for size in SIZES.get(name, SEVENTY_TOKENS)]
    media: list[Picture | Sound] = [Picture(pixels) for pixels in shown]
    if name == HEARS:
        shown.append(sound(name, 0, 1))
        media.append(Sound(shown[-1]))
    model = load(tmp_path / "tiny.gguf", dtype="float32")
    encode = encoding(model)
    for medium, theirs in zip(media, made_by_llama_cpp(tmp_path, shown), strict=True):
        most = None if name in SIZES else 70
        ours = soft_tokens(model, model.media.place(medium, max_soft_tokens=most), encode)
        assert ours.shape == theirs.shape
        assert apart(ours, theirs) <= BAR[type(medium)], (type(medium), apart(ours, theirs))
