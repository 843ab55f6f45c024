import dataclasses
import re
import sys
from threading import Event

import jax
import numpy as np
import pytest

from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.recipes import Recipe
from training import checkpoints, configs, export, passed_on, which
from training.__main__ import make
from training.data.pointers import NUMBERS, SAME_WORD
from training.look import HEADS, Looking
from training.train import CHECKPOINT, Settings, load_params, train, train_step
from training.which import AFTER


@pytest.fixture
def run(tmp_path, tokenizer_folder):
    def new(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tokenizer").symlink_to(tokenizer_folder)
        return folder

    return new


@pytest.fixture
def settings(tiny, lax_dtypes):
    return Settings(
        "tiny", tokens=40 * 384, rows=1, length=384, rate=1e-2, warmup_tokens=2000, ramp_tokens=2000, long_share=0
    )


def stored(folder):
    return jax.tree.leaves(load_params(folder)[0])


def test_the_loss_falls_and_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(run, settings):
    whole, parts = run("whole"), run("parts")
    train(settings, whole)
    train(settings, parts, seconds=0)
    assert checkpoints.read_progress(parts / CHECKPOINT).step == 1
    train(settings, parts)
    assert all(np.array_equal(a, b) for a, b in zip(stored(whole), stored(parts), strict=True))
    first, last = (
        float(re.findall(r"loss +([\d.]+)", line)[0]) for line in (whole / "log.txt").read_text().splitlines()
    )
    assert last < first - 0.5
    assert "<polyline" in (whole / "loss.svg").read_text()


def test_a_model_is_made_once(run, settings, tmp_path):
    folder, out = run("made"), tmp_path / "out"
    make(folder, out, settings, workers=0)
    first = (folder / CHECKPOINT).stat().st_mtime_ns
    assert {each.name for each in out.iterdir()} >= {"model.safetensors", "config.json", "loss.svg"}
    make(folder, out, settings, workers=0)  # what is done is not repeated
    assert (folder / CHECKPOINT).stat().st_mtime_ns == first


def test_a_run_that_is_told_to_stop_saves_what_is_done(run, settings):
    folder, stop = run("told"), Event()
    stop.set()
    train(settings, folder, stop=stop)
    assert checkpoints.read_progress(folder / CHECKPOINT).step == 1


def test_what_is_exported_is_what_was_trained(run, settings, tiny, tmp_path):
    folder = run("run")
    train(settings, folder, seconds=0)
    params, _ = load_params(folder)
    params["layers"][0]["q_norm"] = params["layers"][0]["q_norm"] * 1.5  # so that it is not one everywhere
    export.export(params, "tiny", folder / "tokenizer", tmp_path / "out", "float32")
    model = load(tmp_path / "out", recipe=Recipe("float32"), progress=False)
    assert model.config == tiny
    assert model.generation_defaults["eos_token_id"] == [1, 5, 10]
    assert model.generation_defaults["max_new_tokens"] == 1024
    assert jax.tree.structure(model.params) == jax.tree.structure(params)
    for ours, theirs in zip(jax.tree.leaves(params), jax.tree.leaves(model.params), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    model.close()


def test_what_is_kept_can_have_a_share_of_what_the_run_began_as(ended, tmp_path, settings, monkeypatch):
    before = load(ended, recipe=Recipe("float32"), progress=False).params["embed"]
    again = tmp_path / "again"
    going_on = dataclasses.replace(settings, model="one", grown_from=str(ended), seed="again", kept_share=0.375)
    train(going_on, again)
    wanted = 0.375 * load_params(again)[0]["embed"] + 0.625 * before
    monkeypatch.setattr(sys, "argv", ["export", str(again), str(tmp_path / "mean"), "--dtype", "float32"])
    export.main()
    exported = load(tmp_path / "mean", recipe=Recipe("float32"), progress=False).params["embed"]
    np.testing.assert_allclose(exported, wanted, atol=1e-7)
    make(again, ended, going_on, workers=0)
    made = load(ended, recipe=Recipe("float32"), progress=False).params["embed"]
    np.testing.assert_allclose(made, wanted, atol=1e-2)  # it is exported in bfloat16
    assert np.abs(made - before).max() > 2 * np.abs(made - wanted).max()


@pytest.fixture
def ended(run, settings, tmp_path, monkeypatch):
    """An exported model "one"; and there is a "two", of twice the size."""
    for name, layers, width, heads, ffw in (("one", 2, 16, 4, 24), ("two", 4, 32, 8, 48)):
        sizes = configs._sizes(layers, width, heads, heads // 2, 8, ffw, period=2)
        monkeypatch.setitem(configs.HF_CONFIGS, name, sizes | {"sliding_window": 8})
    folder = run("small")
    train(dataclasses.replace(settings, model="one", tokens=4 * 384), folder)
    export.export(load_params(folder)[0], "one", folder / "tokenizer", tmp_path / "ended")
    return tmp_path / "ended"


def test_a_run_can_begin_as_a_smaller_model_and_goes_on_without_it(ended, tmp_path, settings):
    embed = np.asarray(load(ended, recipe=Recipe("float32"), progress=False).params["embed"])
    growing = dataclasses.replace(settings, model="two", tokens=4 * 384, grown_from=str(ended), rate=0.0)
    large = tmp_path / "large"
    train(growing, large, seconds=0)
    assert (large / "tokenizer" / "tokenizer.json").read_bytes() == (ended / "tokenizer.json").read_bytes()
    np.testing.assert_allclose(load_params(large)[0]["embed"], np.tile(embed, 2) / 2**0.5, rtol=1e-5)
    ended.rename(tmp_path / "gone")
    train(growing, large)
    assert checkpoints.read_progress(large / CHECKPOINT).step == 4


def test_a_run_can_begin_where_another_ended(ended, tmp_path, settings):
    weights = load(ended, recipe=Recipe("float32"), progress=False).params
    train(dataclasses.replace(settings, model="one", grown_from=str(ended), rate=0.0), tmp_path / "next", seconds=0)
    for one, other in zip(jax.tree.leaves(weights), stored(tmp_path / "next"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_of_tools_looks_and_what_is_passed_on_are_learned_beside_what_is_written(run, settings, monkeypatch):
    settings = dataclasses.replace(settings, tokens=4 * 384)
    plain, taught = run("plain"), run("taught")
    monkeypatch.setitem(HEADS, "tiny", (Looking(SAME_WORD, 0, 0, 0),))
    train_step.cache_clear()
    train(settings, plain)
    monkeypatch.setitem(AFTER, "tiny", (0, 0, 0, 0, 0))
    monkeypatch.setitem(passed_on.AFTER, "tiny", (0, 0))
    train_step.cache_clear()
    train(settings, taught)
    train_step.cache_clear()
    assert "which" not in (plain / "log.txt").read_text()
    (line,) = (taught / "log.txt").read_text().splitlines()
    assert re.search(r"looks( +\d+%){1}  which( +\d+%){3}  passed( +\d+%){2}$", line)
    assert not all(np.array_equal(a, b) for a, b in zip(stored(plain), stored(taught), strict=True))
    monkeypatch.setattr(which, "directions", lambda width, _: np.eye(NUMBERS, width, dtype=np.float32))  # it is narrow
    train(dataclasses.replace(settings, stage=2), later := run("later"))
    train_step.cache_clear()
    assert re.search(r"which( +\d+%){5}  ", (later / "log.txt").read_text()), "and what values look like"
