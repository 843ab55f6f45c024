"""Files that somebody writes to, cuts off or replaces while a model is read from them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.loading import place as place_module
from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import leaves
from tests.tiny_gemma import CONFIG, tiny_gemma

FLOAT32 = Recipe("float32")


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "model", tiny_gemma(seed=0, shards=3))


@pytest.fixture
def between(monkeypatch):
    """``between(number, act)``: ``act`` is called when so many arrays were read and moved."""
    monkeypatch.setattr(place_module, "_SMALL", 0)
    put = jax.device_put

    def between(number, act):
        calls = []

        def device_put(*given):
            calls.append(given)
            if len(calls) == number + 1:
                act()
            return put(*given)

        monkeypatch.setattr(jax, "device_put", device_put)

    return between


def everything(model):
    return [np.asarray(array).tobytes() for array in leaves(model.params)]


def test_shards_that_are_replaced_midway_are_no_mixture(folder, between, tmp_path):
    """Each of the same size as before, and each whole: by itself none of them shows it."""
    with load(folder, recipe=FLOAT32) as model:
        count, old = len(everything(model)), everything(model)
    other = write(tmp_path / "other", tiny_gemma(seed=1, shards=3))
    fresh = [path for path in sorted(other.iterdir()) if path.suffix == ".safetensors"]
    for number in range(0, count, 7):
        for replaced in (fresh, fresh[:1], fresh[2:]):
            write(folder, tiny_gemma(seed=0, shards=3))

            def swap(replaced=replaced):
                for path in replaced:
                    shutil.copy(path, folder / "arriving")
                    (folder / "arriving").replace(folder / path.name)

            between(number, swap)
            before = len(jax.live_arrays())
            with pytest.raises(CorruptCheckpointError, match=r"safetensors: expected the file that it was .*replaced"):
                load(folder, recipe=FLOAT32)
            assert len(jax.live_arrays()) == before, "nothing stays on the device"
    write(folder, tiny_gemma(seed=0, shards=3))
    with load(folder, recipe=FLOAT32) as model:
        assert everything(model) == old


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
def test_what_belongs_to_the_weights_is_compared_with_them(folder, between, name):
    between(5, lambda: (folder / name).write_bytes((folder / name).read_bytes()))
    with pytest.raises(CorruptCheckpointError, match=rf"{name}: expected .* no longer being written"):
        load(folder, recipe=FLOAT32)


def test_a_file_written_in_place_with_its_old_time_is_noticed(folder, between):
    path = folder / "model-00002-of-00003.safetensors"

    def write_and_hide():
        facts = path.stat()
        with path.open("r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\0\0")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    between(1, write_and_hide)
    with pytest.raises(CorruptCheckpointError):
        load(folder, recipe=FLOAT32)


def test_other_files_may_come_and_go(folder, between):
    between(5, lambda: write(folder, {"trainer_state.json": b"{}", "train.log": b"step 7"}))
    load(folder, recipe=FLOAT32).close()


def test_nothing_is_said_of_a_folder_that_is_not_there(tmp_path):
    Unchanged.now(tmp_path / "absent").check()
    Unchanged.now(Path("nul\0")).check()


def test_a_disk_that_breaks_is_an_error_of_this_package(folder, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(CheckpointError, match="can be read to its end, found Input/output error"):
        load(folder, recipe=FLOAT32)


class TestLoadedAgain:
    """Only weights are read the second time: what was kept of the model has to fit to them."""

    def test_the_same_files_give_the_same_model(self, folder):
        model = load(folder, recipe=FLOAT32)
        before = everything(model)
        again = load_again(model)
        assert everything(again) == before

    def test_new_weights_come_whole_where_all_else_says_what_it_said(self, folder, tmp_path):
        model = load(folder, recipe=FLOAT32)
        model.close()
        write(folder, tiny_gemma(seed=1, shards=3))  # its configuration and its tokenizer anew, with the same content
        again = load_again(model)
        fresh = load(write(tmp_path / "fresh", tiny_gemma(seed=1, shards=3)), recipe=FLOAT32)
        assert everything(again) == everything(fresh)

    @pytest.mark.parametrize(
        ("name", "content", "found"),
        [
            (
                "tokenizer_config.json",
                b'{"bos_token": "<bos>", "eos_token": "<pad>"}',
                "another tokenizer than its own",
            ),
            ("generation_config.json", b'{"top_k": 3}', r"another generation_config\.json than its own"),
            ("config.json", json.dumps(CONFIG | {"rms_norm_eps": 1e-5}).encode(), "another one"),
        ],
    )
    def test_what_would_not_fit_is_refused_before_a_weight_is_read(self, folder, monkeypatch, name, content, found):
        model = load(folder, recipe=FLOAT32)
        model.close()
        write(folder, {name: content})
        monkeypatch.setattr(os, "preadv", lambda *_: pytest.fail("weights were read"))
        with pytest.raises(CheckpointError, match=rf"'model' that was loaded before, found {found}\. Unload it"):
            load_again(model)

    def test_files_that_change_meanwhile(self, folder, between):
        model = load(folder, recipe=FLOAT32)
        before = everything(model)
        between(3, lambda: write(folder, tiny_gemma(seed=1, shards=3)))
        with pytest.raises(CorruptCheckpointError):
            load_again(model)
        assert everything(model) == before


CUT = """
    import os, random, sys
    from pathlib import Path

    import jax

    from langchain_gemma_jax.errors import CorruptCheckpointError
    from langchain_gemma_jax.models.loading import place as place_module
    from langchain_gemma_jax.models.loading.load import load, load_again
    from langchain_gemma_jax.models.recipes import Recipe
    from langchain_gemma_jax.models.seams.recipe import Plan

    folder, seeds = Path(sys.argv[1]), int(sys.argv[2])
    sound = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    largest = sorted(sound, key=lambda path: len(sound[path]))[-int(sys.argv[3]):]
    place_module._SMALL = 0
    turned = Plan(out_first=False)
    recipes = [Recipe("float32"), Recipe("bfloat16"), Recipe("bfloat16", layers=turned, embed=turned)]
    put, calls, cut = jax.device_put, [], 0

    def device_put(*given):
        calls.append(given)
        if len(calls) == moment:
            os.truncate(path, chance.randrange(len(sound[path])))
        return put(*given)

    jax.device_put = device_put
    for seed in range(seeds):
        chance = random.Random(seed)
        path, moment = chance.choice(largest), chance.randrange(1, 16)  # of some twenty arrays
        calls.clear()
        try:
            load(folder, recipe=chance.choice(recipes)).close()
            sys.exit(f"{seed}: the model of a file that was cut off")
        except CorruptCheckpointError:
            cut += 1
        for each, content in sound.items():
            if each.stat().st_size != len(content):
                each.write_bytes(content)
    print(cut)
"""


def cut_off(folder, seeds, files):
    command = [sys.executable, "-c", textwrap.dedent(CUT), str(folder), str(seeds), str(files)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert (run.returncode, run.stdout) == (0, f"{seeds}\n"), (run.returncode, run.stderr[-2000:])


@pytest.mark.long
@pytest.mark.parametrize("seeds", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_a_file_that_is_cut_off_while_it_is_read_does_not_end_the_process(tmp_path, seeds):
    """Of some megabytes: the pages of a smaller one are all there when the first of them is read."""
    with mock.patch.dict(CONFIG, hidden_size=256, intermediate_size=512):
        files = tiny_gemma()
    assert len(files["model.safetensors"]) > 3e6
    cut_off(write(tmp_path / "model", files), seeds, 1)
