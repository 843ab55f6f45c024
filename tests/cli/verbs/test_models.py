"""Models on the disk, in memory, and of other programs."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from huggingface_hub import constants

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.cli.terminal import Terminal
from tests.engine.residency.test_status_file import STATUS
from tests.hub_server import HubServer
from tests.models.gguf import test_header as gguf_file
from tests.models.gguf.ollama_store import Store
from tests.tiny_gemma import tiny_gemma


def test_lists_of_models_fit_a_narrow_terminal(own):
    board = StatusFile()
    board.show([replace(STATUS, name="./a/model/with/a/name/that/is/longer/than/the/line")])
    with Terminal((40, 24)) as terminal:
        assert main(["models"]) == 0
        lines = terminal.take().replace("\r", "").split("\n")
    board.take_down()
    assert max(map(len, lines)) <= 40
    assert "  google/gemma-3-1b-it" in [line[:22] for line in lines]
    assert "      tokens" in lines  # what is left of a line stands under it


def test_a_model_on_the_disk_is_deleted_when_somebody_says_so(own, capsys):
    folder = own / "hub" / "models--google--gemma-3-1b-it"
    (folder / "snapshots" / ("a" * 40)).mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    config = folder / "snapshots" / ("a" * 40) / "config.json"
    config.write_text('{"model_type": "gemma3_text"}')
    assert main(["models", "rm", "google/gemma-3-1b"]) == 1
    assert "Did you mean 'google/gemma-3-1b-it'?" in capsys.readouterr().err
    assert main(["models", "rm", "google/gemma-3-1b-it"]) == 2
    assert "only with --yes" in capsys.readouterr().err
    board = StatusFile()
    board.show([replace(STATUS, name=str(config.parent))])
    assert main(["models", "rm", "google/gemma-3-1b-it", "--yes"]) == 2
    assert f"is in memory in process {os.getpid()}" in capsys.readouterr().err
    board.take_down()
    assert config.exists()
    with Terminal((80, 24)) as terminal:
        terminal.type("n\n")
        assert main(["models", "rm", "google/gemma-3-1b-it"]) == 1
    assert config.exists()
    assert main(["models", "rm", "google/gemma-3-1b-it", "--yes"]) == 0
    assert not folder.exists()


def headed(architecture, kind=None):
    """A GGUF file that says no more than what it is."""
    known = [] if architecture is None else [("general.architecture", 8, gguf_file.text(architecture))]
    if kind is not None:
        known.append(("general.type", 8, gguf_file.text(kind)))
    return gguf_file.container([gguf_file.entry(*each) for each in known])


def test_gguf_files_of_other_programs_are_listed(own, monkeypatch, capsys):
    monkeypatch.setenv("OLLAMA_MODELS", str(own / "ollama"))
    monkeypatch.setenv("LLAMA_CACHE", str(own / "llama"))
    store = Store(own / "ollama")
    for name, architecture in (("gemma3/4b", "gemma3"), ("llama3/8b", "llama"), ("broken/x", None)):
        store.add(f"registry.ollama.ai/library/{name}", headed(architecture))
    (own / "llama").mkdir()
    (own / "llama" / "g-Q8_0.gguf").write_bytes(headed("gemma\x1b[2J"))
    (own / "llama" / "lora-f16.gguf").write_bytes(headed("gemma3", "adapter"))
    assert main(["models"]) == 0
    shown, _, adapters = capsys.readouterr().out.partition("Adapters (LoRA)")
    assert "lora-f16.gguf" in adapters
    assert "lora-f16.gguf" not in shown
    assert "  ollama:gemma3:4b " in shown
    assert "gemma3, Ollama\n" in shown
    assert "g-Q8_0.gguf" in shown
    assert "and 2 of other families" in shown
    assert "llama3" not in shown
    assert "\x1b" not in shown


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
    lora = tmp_path / "hub" / "models--me--lora" / "snapshots" / "abc"
    lora.mkdir(parents=True)
    (lora / "adapter_config.json").write_text('{"base_model_name_or_path": "google/gemma-3-1b-it"}')
    board = StatusFile()
    board.show(
        [
            replace(STATUS, name="./a", weights=5 * 2**20, adapters=("french", "pirate")),
            replace(STATUS, name="./b", leases=2, pinned=False),
        ]
    )
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    board.take_down()
    assert "google/gemma-3-270m-it            511.5 MiB of weights, up to  32,768 tokens" in shown
    assert "google/gemma-3-1b-it" in shown
    assert "somebody/else" not in shown
    assert "In memory, in 1 process:" in shown
    assert re.search(rf"{re.escape(str(lora))} +\d+ B, PEFT, for google/gemma-3-1b-it\n", shown)
    facts = r"idle for 1,?0\d\d s, pinned, adapters french, pirate, 7 B of KV on the host\n"
    line = rf"\./a, process {os.getpid()}: 5\.0 MiB, {facts}"
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
