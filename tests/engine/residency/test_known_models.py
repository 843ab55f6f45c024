"""The parts of a model that stay while it is away: its name, its answers, its files."""

from __future__ import annotations

import shutil

import pytest

from langchain_gemma_jax.errors import CheckpointError, InputError
from tests.engine.faults_support import SMALL, greedy
from tests.engine.residents_support import PROMPT, baseline, on_device


def test_its_answers_are_remembered_with_the_model_while_it_is_away(fitting, folders):
    engine = fitting(1)
    served = engine.load(folders[0])
    model, tokenizer = served.model, served.model.tokenizer
    engine.load(folders[1])
    assert engine.load(folders[0]) is served
    assert served.model is model
    assert model.tokenizer is tokenizer
    assert not model.closed


def test_unloading_frees_the_weights_and_forgets_the_name(engine_of, folders):
    before, engine = baseline(), engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    with engine.hold(served), pytest.raises(InputError, match="in use"):
        engine.unload(served)
    engine.unload(served)
    assert served.model.closed
    assert (on_device(), engine.models()) == (before, ())
    for call in (engine.unload, engine.evict, engine.pin, lambda s: engine.submit(s, PROMPT), engine.prepare):
        with pytest.raises(InputError, match="not served"):
            call(served)
    assert engine.load(folders[0]) is not served


def test_one_that_is_away_can_be_unloaded(fitting, folders):
    engine = fitting(1)
    one, _ = (engine.load(folder) for folder in folders[:2])
    engine.unload(one)
    assert [model.name for model in engine.models()] == ["model-1"]


def test_files_that_became_another_model_are_not_taken_for_this_one(fitting, folders, tmp_path):
    engine = fitting(1)
    folder = tmp_path / "changing"
    shutil.copytree(folders[0], folder)
    one = engine.load(folder)
    engine.load(folders[1])
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"sliding_window": 8', '"sliding_window": 9'))
    with pytest.raises(CheckpointError, match="Unload it"):
        engine.submit(one, PROMPT, greedy(2)).result()
    with pytest.raises(CheckpointError, match="Unload it"):
        engine.load(folder)
    shutil.rmtree(folder)
    with pytest.raises(CheckpointError):
        engine.submit(one, PROMPT, greedy(2)).result()
