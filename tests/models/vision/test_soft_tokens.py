"""Pictures, soft tokens and answers against those of transformers: ``tests/goldens/make_media.py`` wrote them."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.medium import Picture, Sound
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward, logits
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.seams.kv_cache import allocate
from tests.parity.media_models import (
    BEGIN,
    MODELS,
    NEW_TOKENS,
    PICTURE,
    PIXELS_OF,
    SCORED,
    SECONDS,
    SEEDS,
    SIZES,
    SOUND,
    picture,
    shown,
    sound,
)
from tests.seeing_folder import golden, write_seeing

BAR = 2e-4  # of the spread
every = pytest.mark.parametrize("name", [*MODELS])


def opened(folder, name, seed):
    """Load the model of a seed."""
    write_seeing(folder, name, seed)
    return load(folder, dtype="float32")


def apart(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.std(theirs))


def soft_tokens(model, placed, program):
    number, _ = model.encoders.encoder_of(placed.inputs)
    if number not in model.encoders.loaded:
        model.encoders.loaded[number] = model.encoders.read(number, "float32", model.placement)
    return np.asarray(program(number, model.encoders.loaded[number].parts(), placed.inputs))[: len(placed.placeholders)]


def encoding(model):
    """Encode with all parts in one program."""

    @partial(jax.jit, static_argnums=0)
    def encode(number, parts, inputs):
        encoder = model.encoders.encoders[number]
        state = encoder.begin(parts[0], inputs)
        for arrays in parts[1:-1]:
            state = encoder.layer(arrays, state)
        return encoder.end(parts[-1], state)

    return encode


@every
def test_pictures_are_prepared_as_transformers_prepares_them(name, tmp_path):
    model = opened(tmp_path, name, 0)
    for number in PIXELS_OF:
        inputs = model.media.place(Picture(picture(name, 0, number))).inputs
        theirs = golden(name)[f"pixels_{number}"]
        ours = inputs["pixels"].transpose(2, 0, 1) if "pixels" in inputs else inputs["patches"]
        assert np.abs(ours.astype(int) - theirs).max() <= 1, SIZES[number]


@every
@pytest.mark.long
def test_soft_tokens_and_answers_are_those_of_transformers_for_ten_models(name, tmp_path):
    found = golden(name)
    encode = None
    for seed in range(SEEDS):
        model = opened(tmp_path / str(seed), name, seed)
        encode = encode or encoding(model)
        soft = {}
        for number in shown(seed) if seed else range(len(SIZES)):
            placed = model.media.place(Picture(picture(name, seed, number)))
            theirs = found[f"soft_{seed}_{number}"]
            soft[number] = soft_tokens(model, placed, encode)
            assert seed or len(placed.placeholders) == len(theirs), SIZES[number]
            ours = soft[number][: len(theirs)]
            assert apart(ours, theirs) <= BAR, (seed, SIZES[number], apart(ours, theirs))
        tokens = found[f"tokens_{seed}"]
        scores = read(model, tokens, [soft[number] for number in shown(seed)])
        assert (scores[:, :BEGIN].argmax(-1) == tokens[-NEW_TOKENS:]).all(), seed
        if seed < SCORED:
            theirs = found[f"logits_{seed}"]
            assert apart(scores, theirs) <= BAR, (seed, apart(scores, theirs))


@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if kind.config.get("audio_config")])
@pytest.mark.long
def test_what_is_heard_is_what_transformers_hears(name, tmp_path):
    found = golden(name)
    for seed in range(SCORED):
        model = opened(tmp_path / str(seed), name, seed)
        encode = encoding(model)
        for number in range(len(SECONDS)):
            placed, theirs = model.media.place(Sound(sound(name, seed, number))), found[f"heard_{seed}_{number}"]
            assert len(placed.placeholders) == len(theirs)
            ours = soft_tokens(model, placed, encode)
            assert apart(ours, theirs) <= BAR, (seed, number, apart(ours, theirs))
            assert (placed.before, placed.placeholders[0], placed.after) == ((153,), SOUND, (155,))
        with pytest.raises(InputError, match="at most"):
            model.media.place(Sound(np.zeros(16_000 * 60, np.float32)))


def read(model, tokens, soft):
    """The scores before each of the last tokens, where pictures are read in chunks of their own, with padding."""
    config, at, scores = model.config, 0, []
    cache = allocate(config.cache_layout, 1, 512, "float32")
    left, pictures = list(tokens[:-1]), iter(soft)
    while at < len(left):
        if left[at] == PICTURE:
            vectors = next(pictures)
            padded = np.zeros((1, 80, vectors.shape[1]), np.float32)
            padded[0, : len(vectors)] = vectors
            count, hidden = len(vectors), None
            hidden, cache = _medium(model, padded, at, count, cache)
        else:
            count = 0
            while at + count < len(left) and left[at + count] != PICTURE and count < 16:
                count += 1
            ids = np.zeros((1, 16), np.int32)
            ids[0, :count] = left[at : at + count]
            hidden, cache = _text(model, ids, at, count, cache)
        scores.append(np.asarray(logits(model.params, config, model.recipe, hidden))[0, :count])
        at += count
    return np.concatenate(scores)[-NEW_TOKENS:]


def _arrays(at, count):
    return jnp.array([at], jnp.int32), jnp.array([count], jnp.int32)


def _medium(model, vectors, at, count, cache):
    sight = model.encoders.encoders[0].sight
    return _medium_program(model.config, model.recipe, sight)(model.params, vectors, *_arrays(at, count), cache)


@lru_cache
def _medium_program(config, recipe, sight):
    @jax.jit
    def program(params, vectors, start, count, cache):
        padding = jnp.zeros(vectors.shape[:2], jnp.int32)
        return forward(params, config, recipe, padding, start, count, cache, medium=SoftChunk(vectors, sight))

    return program


def _text(model, ids, at, count, cache):
    return _text_program(model.config, model.recipe)(model.params, ids, *_arrays(at, count), cache)


@lru_cache
def _text_program(config, recipe):
    @jax.jit
    def program(params, ids, start, count, cache):
        return forward(params, config, recipe, ids, start, count, cache)

    return program


@every
def test_a_prompt_has_the_marks_of_the_models_processor_around_a_picture(name, tmp_path):
    model = opened(tmp_path, name, 0)
    placed = model.media.place(Picture(picture(name, 0, 4)))
    paragraph = tuple(model.tokenizer.encode_text("\n\n")) if name.startswith("gemma-3") else ()
    assert placed.before == (*paragraph, BEGIN)
    assert set(placed.placeholders) == {PICTURE}
    assert placed.after == (152, *paragraph)
    again = model.media.place(Picture(picture(name, 0, 4)))
    other = model.media.place(Picture(255 - picture(name, 0, 4)))
    assert placed.digest == again.digest != other.digest
