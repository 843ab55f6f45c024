"""Weight files: written once by one of many, within a budget, and never used if they changed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError
from langchain_gemma_jax.models.loading import place
from langchain_gemma_jax.models.mapped.weight_files import SUFFIX, WeightFiles
from tests.models.gguf.make import CONFIGS, small_tokenizer, write
from tests.models.mapped.mapping import arrays, model_of, names_in, same, until_kept


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
def test_a_changed_file_is_noticed_before_its_bytes_are_used(damage, packed_file, weight_files):
    plain = arrays(model_of(packed_file, weight_files))
    gc.collect()
    until_kept(weight_files)
    damage(weight_files.path / weight_files.names()[0])
    again = model_of(packed_file, weight_files)
    until_kept(weight_files, 2)
    assert same(arrays(again), plain)
    assert (weight_files.counts.rejected, weight_files.counts.mapped) == (1, 0)
    assert model_of(packed_file, weight_files).not_mapped == ""
    assert weight_files.counts.mapped == 1


def test_of_many_at_once_one_writes_and_the_others_map(packed_file, weight_files):
    plain = arrays(model_of(packed_file, None))
    models = []
    threads = [threading.Thread(target=lambda: models.append(model_of(packed_file, weight_files))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(arrays(model), plain) and not model.not_mapped for model in models)
    assert (weight_files.counts.written, weight_files.counts.mapped, len(models)) == (1, 5, 6)


def test_a_load_that_fails_leaves_nothing(packed_file, weight_files, monkeypatch):
    def fails(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, "_is_norm", fails)
        with pytest.raises(KeyboardInterrupt):
            model_of(packed_file, weight_files)
    assert names_in(weight_files.path) == []
    changed = place._is_norm

    def changes(path):
        os.utime(packed_file)
        return changed(path)

    with monkeypatch.context() as patch:
        patch.setattr(place, "_is_norm", changes)
        with pytest.raises(CorruptCheckpointError):
            model_of(packed_file, weight_files)
    assert names_in(weight_files.path) == []
    assert model_of(packed_file, weight_files).not_mapped == ""


def test_a_process_that_is_killed_leaves_no_file(packed_file, weight_files):
    code = """
import os, sys
from pathlib import Path
from langchain_gemma_jax.models.loading import map_weights as map_weights_module
from langchain_gemma_jax.models.loading import place
from langchain_gemma_jax.models.loading.map_weights import map_weights
from langchain_gemma_jax.models.mapped.weight_files import WeightFiles
from tests.models.mapped.mapping import model_of

def ends(_path):
    os.kill(os.getpid(), 9)

place._is_norm = ends
model_of(Path(sys.argv[1]), WeightFiles(Path(sys.argv[2]), least=0))
"""
    done = subprocess.run([sys.executable, "-c", code, str(packed_file), str(weight_files.path)], check=False)
    assert done.returncode == -9
    assert [name for name in names_in(weight_files.path) if not name.endswith(".claim")] == []
    assert model_of(packed_file, weight_files).not_mapped == ""
    until_kept(weight_files)
    assert names_in(weight_files.path) == weight_files.names()


def test_the_least_recently_used_go_when_the_budget_is_full(tmp_path):
    sizes, weight_files = [], WeightFiles(tmp_path / "weights", least=0)
    for number in range(3):
        path = tmp_path / f"{number}.gguf"
        write(path, CONFIGS["gemma3"], lambda _: "Q8_0", seed=number, tokenizer=small_tokenizer())
        for name in weight_files.names():  # the time of last use is set once a day
            kept = weight_files.path / name
            os.utime(kept, (kept.stat().st_atime - 2 * 86_400, kept.stat().st_mtime))
        if number == 2:
            model_of(tmp_path / "0.gguf", weight_files)  # which was used after the other
            weight_files.most = sum(sizes) + sizes[0] // 2
        model_of(path, weight_files)
        until_kept(weight_files, number + 1)
        sizes = [(weight_files.path / name).stat().st_size for name in weight_files.names()]
    assert weight_files.counts.evicted == 1
    before = weight_files.counts.mapped
    for number in (0, 2):
        model_of(tmp_path / f"{number}.gguf", weight_files)
    assert weight_files.counts.mapped == before + 2
    assert {label for label, _ in weight_files.listed()} == {"0", "2"}
    assert weight_files.clear() == 2
    assert not any(name.endswith(SUFFIX) for name in names_in(weight_files.path))
