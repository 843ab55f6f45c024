"""Weights that are mapped are those that are read, and a file that is not what it should be is never used."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError
from langchain_gemma_jax.models.configuration.how_to_load import DTYPES, HowToLoad
from langchain_gemma_jax.models.loading import map_weights as map_weights_module
from langchain_gemma_jax.models.loading import place
from langchain_gemma_jax.models.loading.map_weights import map_weights
from langchain_gemma_jax.models.loading.open_model import open_source
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.loading.read import read
from langchain_gemma_jax.models.mapped import weight_files
from langchain_gemma_jax.models.mapped.weight_files import SUFFIX, WeightFiles
from langchain_gemma_jax.models.seams.params import leaves
from tests.models.gguf.make import CONFIGS, small_tokenizer, write

KINDS = ("Q8_0", "Q4_0", "Q4_K", "Q6_K", "BF16", "F32")


@pytest.fixture
def files(tmp_path):
    return WeightFiles(tmp_path / "weights", least=0)


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "model.gguf"
    write(path, CONFIGS["gemma3"], lambda _: "Q8_0", tokenizer=small_tokenizer())
    return path


def model_of(path, files, **how):
    asked = HowToLoad(**how)
    with open_source(path, asked, progress=False) as opened:
        return read(opened, plan_model(opened, asked, Devices()), progress=False, weight_files=files)


def arrays(model):
    """Copies: of a mapped model ``np.asarray`` would show the file."""
    return [np.array(array) for array in leaves(model.params)]


def same(one, other):
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=True)
    )


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def maps():
    """The lines of this process's mappings."""
    return Path("/proc/self/maps").read_text("utf-8").splitlines()


def until_kept(files, count=1):
    while files.counts.written < count or any(name.endswith(".claim") for name in names_in(files.path)):
        time.sleep(0.002)


def read_filled_and_mapped(path, files, **how):
    """Check that a model's arrays are the same however they come to memory."""
    plain, first = model_of(path, None, **how), model_of(path, files, **how)
    until_kept(files, files.counts.mapped + 1)
    again = model_of(path, files, **how)
    assert same(arrays(plain), arrays(first))
    assert same(arrays(plain), arrays(again))
    assert jax.tree.structure(plain.params) == jax.tree.structure(again.params)
    assert (bool(plain.not_mapped), first.not_mapped, again.not_mapped) == (True, "", "")
    assert files.counts.mapped == files.counts.written == len(files.names())


@pytest.mark.parametrize("name", CONFIGS)
def test_arrays_of_packed_files_are_the_same_bits_read_filled_and_mapped(name, tmp_path, files):
    for number, kind in enumerate(KINDS):
        path = tmp_path / f"{kind}.gguf"
        write(path, CONFIGS[name], lambda _, kind=kind: kind, seed=number, tokenizer=small_tokenizer())
        read_filled_and_mapped(path, files)


def test_arrays_of_dense_files_are_too_in_each_form(folder, files):
    for how in ({"weights": "int8"}, {"weights": "int4"}, *({"dtype": dtype} for dtype in DTYPES)):
        read_filled_and_mapped(folder, files, **how)


def test_jax_takes_mapped_arrays_over_without_a_copy(model_file, files):
    model_of(model_file, files)
    until_kept(files)
    model = model_of(model_file, files)
    (mapped,) = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in maps()
        if files.names()[0] in line and line.split()[1] == "r--s"
    ]
    for array in leaves(model.params):
        assert mapped[0] <= array.unsafe_buffer_pointer() < mapped[1]
    model.close()
    del array, model
    gc.collect()  # JAX drops its references at the next one
    assert files.names()[0] not in "".join(maps())


def test_a_filled_file_is_not_written_to_any_more(model_file, files):
    model = model_of(model_file, files)
    until_kept(files)
    place = min(array.unsafe_buffer_pointer() for array in leaves(model.params))
    (access,) = [
        line.split()[1]
        for line in maps()
        if int(line.split("-")[0], 16) <= place < int(line.split()[0].split("-")[1], 16)
    ]
    assert access == "r--s"


def test_another_model_in_its_place_is_read_anew(model_file, files):
    model_of(model_file, files)
    until_kept(files)
    write(model_file, CONFIGS["gemma3"], lambda _: "Q8_0", seed=9, tokenizer=small_tokenizer())
    other = model_of(model_file, files)
    until_kept(files, 2)
    assert same(arrays(other), arrays(model_of(model_file, None)))
    assert files.counts.mapped == 0
    assert len(files.names()) == 1  # it takes the place of the one before
    assert same(arrays(model_of(model_file, files)), arrays(other))


def test_code_that_lays_arrays_out_in_another_way_reads_anew(model_file, files, monkeypatch):
    model_of(model_file, files)
    until_kept(files)
    monkeypatch.setattr(map_weights_module, "_code", lambda: "another")
    model_of(model_file, files)
    until_kept(files, 2)
    assert files.counts.mapped == 0


def torn(path):
    os.truncate(path, path.stat().st_size - 4096)


def flipped(path):
    with path.open("r+b") as file:
        file.seek(8192)
        byte = file.read(1)
        file.seek(8192)
        file.write(bytes([byte[0] ^ 1]))


def header_flipped(path):
    facts = path.stat()
    with path.open("r+b") as file:
        file.seek(20)
        file.write(b"\xff\x00\xff")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [torn, flipped, header_flipped, emptied])
def test_a_changed_file_is_noticed_before_its_bytes_are_used(damage, model_file, files):
    plain = arrays(model_of(model_file, files))
    gc.collect()
    until_kept(files)
    damage(files.path / files.names()[0])
    again = model_of(model_file, files)
    until_kept(files, 2)
    assert same(arrays(again), plain)
    assert (files.counts.rejected, files.counts.mapped) == (1, 0)
    assert model_of(model_file, files).not_mapped == ""
    assert files.counts.mapped == 1


def test_of_many_at_once_one_writes_and_the_others_map(model_file, files):
    plain = arrays(model_of(model_file, None))
    models = []
    threads = [threading.Thread(target=lambda: models.append(model_of(model_file, files))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(arrays(model), plain) and not model.not_mapped for model in models)
    assert (files.counts.written, files.counts.mapped, len(models)) == (1, 5, 6)


def test_a_load_that_fails_leaves_nothing(model_file, files, monkeypatch):
    def fails(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, "_is_norm", fails)
        with pytest.raises(KeyboardInterrupt):
            model_of(model_file, files)
    assert names_in(files.path) == []
    changed = place._is_norm

    def changes(path):
        os.utime(model_file)
        return changed(path)

    with monkeypatch.context() as patch:
        patch.setattr(place, "_is_norm", changes)
        with pytest.raises(CorruptCheckpointError):
            model_of(model_file, files)
    assert names_in(files.path) == []
    assert model_of(model_file, files).not_mapped == ""


def test_a_process_that_is_killed_leaves_no_file(model_file, files):
    code = """
import os, sys
from pathlib import Path
from langchain_gemma_jax.models.loading import map_weights as map_weights_module
from langchain_gemma_jax.models.loading import place
from langchain_gemma_jax.models.loading.map_weights import map_weights
from tests.models.loading.test_map_weights import WeightFiles, model_of

def ends(_path):
    os.kill(os.getpid(), 9)

place._is_norm = ends
model_of(Path(sys.argv[1]), WeightFiles(Path(sys.argv[2]), least=0))
"""
    done = subprocess.run([sys.executable, "-c", code, str(model_file), str(files.path)], check=False)
    assert done.returncode == -9
    assert [name for name in names_in(files.path) if not name.endswith(".claim")] == []
    assert model_of(model_file, files).not_mapped == ""
    until_kept(files)
    assert names_in(files.path) == files.names()


def test_a_model_that_cannot_be_mapped_is_read_and_says_why(model_file, files, monkeypatch, tmp_path):
    plain = arrays(model_of(model_file, None))

    def why(weights, **changes):
        with monkeypatch.context() as patch:
            for name, value in changes.items():
                patch.setattr(weight_files, name, value)
            model = model_of(model_file, weights)
        assert same(arrays(model), plain)
        return model.not_mapped

    assert why(None) == "configure(map_weights=False) says so"
    assert why(WeightFiles(files.path)) == "they are less than 32 MiB"
    assert "is on nfs4, from which files are not mapped" in why(files, file_system=lambda _: "nfs4")
    assert "is on an unknown file system" in why(files, file_system=lambda _: "")
    assert "more than the 0 MiB that may be kept" in why(WeightFiles(files.path, most=1000, least=0))
    full = shutil.disk_usage(tmp_path)._replace(free=1000)

    class Full:
        disk_usage = staticmethod(lambda _: full)

    assert "0 MiB left, and they would take more than half of it" in why(files, shutil=Full)

    def no_room(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_room)
        assert "No space left on device" in why(files)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert why(WeightFiles(open_to_all, least=0)) == f"{open_to_all} cannot be used"
    assert files.names() == []
    assert why(files) == ""


def test_the_least_recently_used_go_when_the_budget_is_full(tmp_path):
    sizes, files = [], WeightFiles(tmp_path / "weights", least=0)
    for number in range(3):
        path = tmp_path / f"{number}.gguf"
        write(path, CONFIGS["gemma3"], lambda _: "Q8_0", seed=number, tokenizer=small_tokenizer())
        if number == 2:
            model_of(tmp_path / "0.gguf", files)  # which was used after the other
            files.most = sum(sizes) + sizes[0] // 2
        model_of(path, files)
        until_kept(files, number + 1)
        sizes = [(files.path / name).stat().st_size for name in files.names()]
    assert files.counts.evicted == 1
    before = files.counts.mapped
    for number in (0, 2):
        model_of(tmp_path / f"{number}.gguf", files)
    assert files.counts.mapped == before + 2
    assert {label for label, _ in files.listed()} == {"0", "2"}
    assert files.clear() == 2
    assert not any(name.endswith(SUFFIX) for name in names_in(files.path))


def test_a_model_on_a_device_is_copied(model_file, files):
    with open_source(model_file, HowToLoad(), progress=False) as opened:
        plan = plan_model(opened, HowToLoad(), Devices())

        class Elsewhere:
            platform, one_device = "gpu", True

        assert map_weights(opened, replace(plan, placement=Elsewhere()), files) == "they are copied to the device"
