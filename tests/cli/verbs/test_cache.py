"""The files on the disk: listed, verified, deleted."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.models.mapped.weight_files import WeightFiles
from tests.engine.prefix_store.example_prefixes import put, store_in
from tests.models.gguf.make import CONFIGS, small_tokenizer, write
from tests.models.mapped.mapping import model_of, until_kept


@pytest.fixture
def filled(root):
    """Two folders of programs: of one device, and of a release that is gone."""
    stores = [Store(root / "jaxlib-9.9.9-abc" / kind, root=root) for kind in ("cpu", "nvidia-h200")]
    stores[0].put("a", b"1" * 2**20, label="gemma-3-1b-it step 1 512", seconds=2.5)
    stores[0].put("b", b"2" * 10, label="gemma-3-1b-it read 16 512", seconds=1.0)
    stores[1].put("c", b"3" * 10, label="gemma-3-1b-it pick 1", seconds=1.0)
    return stores


def files(root):
    return sorted(path.name for path in root.rglob("*.entry"))


def test_ls_lists_what_is_kept(filled, root, capsys):
    assert main(["cache", "ls"]) == 0
    shown = capsys.readouterr().out
    assert f"{filled[0].folder}: 2 programs, 1.0 MiB" in shown
    assert f"{filled[1].folder}: 1 programs" in shown
    assert "2.5 s to compile  gemma-3-1b-it step 1 512" in shown
    assert shown.endswith("1.0 MiB together\n")
    assert len(files(root)) == 3


def test_verify_finds_a_single_bit_and_deletes_the_program(filled, root, capsys):
    assert main(["cache", "verify"]) == 0
    assert capsys.readouterr().out.count("are as they were written") == 2
    victim = next(iter(sorted(filled[0].folder.glob("*.entry"))))
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    assert main(["cache", "verify"]) == 1
    shown = capsys.readouterr().out
    assert f"damaged, deleted: {victim}" in shown
    assert f"{filled[0].folder}: 1 programs are as they were written" in shown
    assert victim.name not in files(root)
    assert main(["cache", "verify"]) == 0


def test_clear_deletes_all(filled, root, capsys):
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "3 programs deleted\n"
    assert files(root) == []
    assert main(["cache", "ls"]) == 0


def test_weights_are_listed_and_deleted(root, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "own"))
    for action in ("ls", "clear"):
        assert main(["cache", action, "--weights"]) == 0
        assert f"{tmp_path / 'own' / 'weights'}: no weights are kept." in capsys.readouterr().out
    path = tmp_path / "tiny-Q8_0.gguf"
    write(path, CONFIGS["gemma3"], lambda _: "Q8_0", tokenizer=small_tokenizer())
    files = WeightFiles(tmp_path / "own" / "weights", least=0)
    model_of(path, files)
    until_kept(files)
    assert main(["cache", "ls", "--weights"]) == 0
    shown = capsys.readouterr().out
    assert "tiny-Q8_0\n" in shown
    assert ": 1 files of weights, " in shown
    assert main(["cache", "clear", "--weights"]) == 0
    assert capsys.readouterr().out == "1 files of weights deleted\n"
    assert files.names() == []
    with pytest.raises(SystemExit):
        main(["cache", "ls", "--weights", "--prefixes"])


@pytest.mark.parametrize("action", ["ls", "verify", "clear"])
def test_nothing_there_is_nothing_wrong(action, root, capsys):
    assert main(["cache", action]) == 0
    assert not root.exists()


def test_prefixes_are_listed_and_deleted_apart(filled, root, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "kept"))
    for action, said in (("ls", "no prefixes are kept"), ("clear", "0 prefixes deleted")):
        assert main(["cache", action, "--prefixes"]) == 0
        assert said in capsys.readouterr().out
    assert not (tmp_path / "kept").exists()
    stored = store_in(tmp_path / "kept" / "prefixes")
    for seed in (1, 2):
        put(stored, seed)
    assert main(["cache", "ls", "--prefixes"]) == 0
    shown = capsys.readouterr().out
    assert "5 tokens, not encrypted  example 1" in shown
    assert "2 prefixes, 0.0 MiB together" in shown
    assert main(["cache", "clear", "--prefixes"]) == 0
    assert capsys.readouterr().out == "2 prefixes deleted\n"
    assert list((tmp_path / "kept" / "prefixes").iterdir()) == []
    assert len(files(root)) == 3, "programs are not prefixes"


def test_it_says_when_the_cache_is_off(monkeypatch, capsys):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", "off")
    assert main(["cache", "ls"]) == 0
    assert "are not kept" in capsys.readouterr().out
