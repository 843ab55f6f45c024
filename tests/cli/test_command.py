"""The command: what it prints, what it returns, and what it leaves on the disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from langchain_gemma_jax import __version__
from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.executables.warmup import Warmup
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.engine.prefix_store.example_prefixes import put, store_in
from tests.engine.residency.test_status_file import STATUS
from tests.hub_server import HubServer
from tests.tiny_gemma import tiny_gemma

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Where programs are kept in this test."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(tmp_path / "programs"))
    return tmp_path / "programs"


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


def test_errors_are_one_line_and_a_status(monkeypatch, capsys):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", "not/absolute")
    assert main(["cache", "ls"]) == 2
    assert capsys.readouterr().err.startswith("gemma-jax: GEMMA_JAX_COMPILE_CACHE: expected")
    with pytest.raises(SystemExit):
        main([])
    with pytest.raises(SystemExit):
        main(["cache"])


def test_a_look_at_the_cache_needs_no_jax(root):
    verbs = (["cache", "ls"], ["cache", "ls", "--prefixes"], ["models"], ["top"], ["completion", "bash"])
    looks = "; ".join(f"main({verb})" for verb in verbs)
    script = f"import sys; from langchain_gemma_jax.cli.command import main; {looks}; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_warmup_asks_the_engine_and_prints_what_it_is_worth(monkeypatch, capsys):
    asked = []

    class FakeEngine:
        def load(self, model, *, dtype, weights, activations, devices):
            asked.append((model, dtype, weights, activations, devices))
            return "served"

        def warmup(self, served, *, max_context):
            asked.append((served, max_context))
            return Warmup(4, 3, 2.5, 4.0, 3.5, 0.25)

    monkeypatch.setattr(process, "engine", FakeEngine)
    how = ["--dtype", "float32", "--weights", "int8", "--activations", "float32", "--devices", "auto"]
    assert main(["warmup", "some/model", "--max-context", "16", *how]) == 0
    assert asked == [("some/model", "float32", "int8", "float32", "auto"), ("served", 16)]
    assert capsys.readouterr().out == (
        "4 programs, 3 of them compiled, in 2.5 s. What a first answer needs takes a new process 0.2 s to fetch, and "
        "took 3.5 s to compile.\n"
    )


@pytest.mark.slow
def test_warmup_fills_the_cache_for_the_next_process(root, tmp_path, monkeypatch):
    model = tmp_path / "tiny"
    model.mkdir()
    for name, content in tiny_gemma().items():
        (model / name).write_bytes(content)
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    command = [sys.executable, "-m", "langchain_gemma_jax.cli", "warmup", str(model), "--max-context", "16"]
    found = [subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True) for _ in range(2)]
    assert [one.stderr for one in found] == ["", ""]
    assert " 0 of them compiled" not in found[0].stdout
    assert " 0 of them compiled" in found[1].stdout
    assert "s to compile." in found[1].stdout
    assert len(files(root)) > 10


def test_it_says_which_release_it_is(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"gemma-jax {__version__}\n")


def test_the_command_is_installed_by_its_name():
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"gemma-jax": "langchain_gemma_jax_command:main"}


def test_models_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert main(["models"]) == 0
    assert "On the disk, from the Hugging Face Hub: 0 B together" in capsys.readouterr().out
    for name, kind in (("google/gemma-3-1b-it", "gemma3_text"), ("somebody/else", "llama")):
        repo = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        (repo / "snapshots" / "abc").mkdir(parents=True)
        (repo / "refs").mkdir()
        (repo / "refs" / "main").write_text("abc")
        (repo / "snapshots" / "abc" / "config.json").write_text(f'{{"model_type": "{kind}"}}' + " " * 2000)
    board = StatusFile()
    board.show([replace(STATUS, name="./a", weights=5 * 2**20), replace(STATUS, name="./b", leases=2, pinned=False)])
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    board.take_down()
    assert "google/gemma-3-270m-it            511.5 MiB of weights, up to  32,768 tokens" in shown
    assert "google/gemma-3-1b-it" in shown
    assert "somebody/else" not in shown
    assert "In memory, in 1 process:" in shown
    line = rf"\./a, process {os.getpid()}: 5\.0 MiB, idle for 1,?0\d\d s, pinned, 7 B of KV on the host\n"
    assert re.search(line, shown)
    assert f"./b, process {os.getpid()}: 123 B, in use" in shown


def test_a_model_is_fetched_listed_and_deleted(tmp_path, monkeypatch, capsys):
    from huggingface_hub import close_session

    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with HubServer() as server:
        commit = server.add("org/model", tiny_gemma())
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert main(["models", "pull", "org/model"]) == 0
        folder = Path(capsys.readouterr().out.strip())
        assert (folder.name, (folder / "config.json").is_file()) == (commit, True)
        assert main(["models", "pull", "org/modle"]) == 2
        assert capsys.readouterr().err.startswith("gemma-jax: ")
        assert main(["models", "pull", "org/model", "--revision", "nowhere"]) == 2
        close_session()
    capsys.readouterr()
    assert main(["models"]) == 0
    assert "  org/model " in capsys.readouterr().out
    assert main(["models", "rm", "org/model", "--yes"]) == 0
    assert not folder.exists()
