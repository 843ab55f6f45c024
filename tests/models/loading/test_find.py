"""Where a source's files are: here, on the Hub, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from langchain_gemma_jax.errors import InputError, ModelNotOnHubError, OfflineError
from langchain_gemma_jax.models.hub import download as hub
from langchain_gemma_jax.models.loading.load import load


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("spelling", ["absolute", "relative", "dotted", "trailing", "home", "path"])
def test_however_it_is_written(folder, spelling, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    source = {
        "absolute": str(folder),
        "relative": "tiny",
        "dotted": "./tiny",
        "trailing": "tiny/",
        "home": "~/tiny",
        "path": Path("tiny"),
    }[spelling]
    with load(source) as model:
        assert model.name == "tiny"


@pytest.mark.usefixtures("no_hub")
def test_here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with load(".") as model:
        assert model.name == "tiny"


@pytest.mark.usefixtures("no_hub")
def test_a_folder_is_meant_before_an_id(folder, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    with load(f"{folder.parent.name}/tiny") as model:
        assert model.name == "tiny"


def test_a_revision_of_a_folder(folder):
    with pytest.raises(InputError, match=r"revision='main' is for models on the Hub"):
        load(folder, revision="main")


def test_is_fetched(folder, monkeypatch):
    asked = []

    def download(model_id, *, revision, token, progress, stop, file):
        asked.append((model_id, revision, token, progress, stop, file))
        return folder

    monkeypatch.setattr(hub, "download", download)
    with load("org/name", revision="v1", token="secret", progress=False) as model:
        assert model.name == "org/name"
    assert asked == [("org/name", "v1", "secret", False, None, None)]


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(
    "source",
    ["gemma", "", "a/b/c", "org/na me", "org/name\0", "\ud800", "x" * 9999],
)
def test_neither_a_folder_nor_an_id(source):
    with pytest.raises(InputError) as caught:
        load(source)
    assert "neither a folder nor a file that exists here, nor a model's id" in str(caught.value)
    assert '"organization/name"' in str(caught.value)


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("source", ["./gone.gguf", "../gone", "/gone", "~/gone"])
def test_a_path_that_is_not_here_is_said_to_be_one(source):
    with pytest.raises(InputError) as caught:
        load(source)
    whole = str(Path(source).expanduser().absolute())
    assert str(caught.value) == f"{source!r} is not here: there is no file or folder at {whole}."


@pytest.mark.parametrize("kind", [ModelNotOnHubError, OfflineError])
def test_an_unknown_one_may_have_been_meant_as_a_folder(monkeypatch, tmp_path, kind):
    def download(*_, **__):
        raise kind("no such model")

    monkeypatch.setattr(hub, "download", download)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match="no such model") as caught:
        load("models/gemma")
    assert caught.value.__notes__[1:] == [
        f"If a folder or file was meant: there is none at {tmp_path / 'models/gemma'}."
    ]
