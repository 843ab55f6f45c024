"""Weights that are mapped are those that are read, and a file that is not what it should be is never used."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace

import jax
import pytest

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.how_to_load import DTYPES, HowToLoad
from langchain_gemma_jax.models.loading import map_weights as map_weights_module
from langchain_gemma_jax.models.loading.map_weights import map_weights
from langchain_gemma_jax.models.loading.open_model import open_source
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.mapped import weight_files as weight_files_module
from langchain_gemma_jax.models.mapped.weight_files import WeightFiles
from tests.models.gguf.make import CONFIGS, small_tokenizer, write
from tests.models.mapped.mapping import arrays, model_of, same, until_kept

KINDS = ("Q8_0", "Q4_0", "Q4_K", "Q6_K", "BF16", "F32")


def read_filled_and_mapped(path, weight_files, **how):
    """Check that a model's arrays are the same however they come to memory."""
    plain, first = model_of(path, None, **how), model_of(path, weight_files, **how)
    until_kept(weight_files, weight_files.counts.mapped + 1)
    again = model_of(path, weight_files, **how)
    assert same(arrays(plain), arrays(first))
    assert same(arrays(plain), arrays(again))
    assert jax.tree.structure(plain.params) == jax.tree.structure(again.params)
    assert (bool(plain.not_mapped), first.not_mapped, again.not_mapped) == (True, "", "")
    assert weight_files.counts.mapped == weight_files.counts.written == len(weight_files.names())


@pytest.mark.parametrize("name", CONFIGS)
def test_arrays_of_packed_files_are_the_same_bits_read_filled_and_mapped(name, tmp_path, weight_files):
    for number, kind in enumerate(KINDS):
        path = tmp_path / f"{kind}.gguf"
        write(path, CONFIGS[name], lambda _, kind=kind: kind, seed=number, tokenizer=small_tokenizer())
        read_filled_and_mapped(path, weight_files)


def test_arrays_of_dense_files_are_too_in_each_form(folder, weight_files):
    for how in ({"weights": "int8"}, {"weights": "int4"}, *({"dtype": dtype} for dtype in DTYPES)):
        read_filled_and_mapped(folder, weight_files, **how)


def test_another_model_in_its_place_is_read_anew(packed_file, weight_files):
    model_of(packed_file, weight_files)
    until_kept(weight_files)
    write(packed_file, CONFIGS["gemma3"], lambda _: "Q8_0", seed=9, tokenizer=small_tokenizer())
    other = model_of(packed_file, weight_files)
    until_kept(weight_files, 2)
    assert same(arrays(other), arrays(model_of(packed_file, None)))
    assert weight_files.counts.mapped == 0
    assert len(weight_files.names()) == 1  # it takes the place of the one before
    assert same(arrays(model_of(packed_file, weight_files)), arrays(other))


def test_a_copy_with_other_times_is_the_same_model(packed_file, weight_files, monkeypatch):
    """As when an image is unpacked on another machine: other inodes, and times in whole seconds."""
    plain = arrays(model_of(packed_file, weight_files))
    until_kept(weight_files)
    kept = weight_files.path / weight_files.names()[0]
    for path in (packed_file, kept):
        facts, content = path.stat(), path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        path.chmod(0o600)
        os.utime(path, (facts.st_atime, int(facts.st_mtime)))
    again = model_of(packed_file, weight_files)
    assert weight_files.counts.mapped == 1
    assert same(arrays(again), plain)
    assert weight_files.counts.written == 1


def test_a_model_that_is_replaced_while_its_file_is_named_is_not_taken_for_it(packed_file, weight_files, monkeypatch):
    """Else the old arrays would have the new model's digest."""
    usual, went = Unchanged.digest, threading.Event()

    def slow(files):
        if not went.is_set():
            write(packed_file, CONFIGS["gemma3"], lambda _: "Q8_0", seed=9, tokenizer=small_tokenizer())
        found = usual(files)
        went.set()
        return found

    monkeypatch.setattr(Unchanged, "digest", slow)
    model_of(packed_file, weight_files)
    assert went.wait(300)
    other = model_of(packed_file, weight_files)
    assert same(arrays(other), arrays(model_of(packed_file, None)))
    until_kept(weight_files)
    assert weight_files.counts.mapped == 0


def test_code_that_lays_arrays_out_in_another_way_reads_anew(packed_file, weight_files, monkeypatch):
    model_of(packed_file, weight_files)
    until_kept(weight_files)
    monkeypatch.setattr(map_weights_module, "_code", lambda: "another")
    model_of(packed_file, weight_files)
    until_kept(weight_files, 2)
    assert weight_files.counts.mapped == 0


def test_a_model_that_cannot_be_mapped_is_read_and_says_why(packed_file, weight_files, monkeypatch, tmp_path):
    plain = arrays(model_of(packed_file, None))

    def why(weights, **changes):
        with monkeypatch.context() as patch:
            for name, value in changes.items():
                patch.setattr(weight_files_module, name, value)
            model = model_of(packed_file, weights)
        assert same(arrays(model), plain)
        return model.not_mapped

    assert why(None) == "configure(map_weights=False) says so"
    assert why(WeightFiles(weight_files.path)) == "they are less than 32 MiB"
    assert "is on nfs4, from which files are not mapped" in why(weight_files, file_system=lambda _: "nfs4")
    assert "is on an unknown file system" in why(weight_files, file_system=lambda _: "")
    assert "more than the 0 MiB that may be kept" in why(WeightFiles(weight_files.path, most=1000, least=0))
    full = shutil.disk_usage(tmp_path)._replace(free=1000)

    class Full:
        disk_usage = staticmethod(lambda _: full)

    assert "0 MiB left, and they would take more than half of it" in why(weight_files, shutil=Full)

    def no_room(*_args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_room)
        assert "No space left on device" in why(weight_files)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert why(WeightFiles(open_to_all, least=0)) == f"{open_to_all} cannot be used"
    assert weight_files.names() == []
    assert why(weight_files) == ""


def test_a_model_on_a_device_is_copied(packed_file, weight_files):
    with open_source(packed_file, HowToLoad(), progress=False) as opened:
        plan = plan_model(opened, HowToLoad(), Devices())

        class Elsewhere:
            platform, one_device = "gpu", True

        assert (
            map_weights(opened, replace(plan, placement=Elsewhere()), weight_files) == "they are copied to the device"
        )
