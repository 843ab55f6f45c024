"""A GGUF file of a repository is fetched by its name or quantization, with the encoders beside it and nothing else."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import CheckpointNotFoundError, InputError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import choose, projectors, shards_of
from langchain_gemma_jax.models.hub.download import download
from tests.hub_server import HubServer

MANY = {
    "gemma-3-1b-it-Q4_0.gguf": b"q4_0",
    "gemma-3-1b-it-Q4_K_M.gguf": b"q4_k_m",
    "gemma-3-1b-it-Q8_0.gguf": b"q8_0",
    "gemma-3-1b-it-UD-IQ1_M.gguf": b"iq1",
    "BF16/gemma-3-1b-it-BF16-00001-of-00002.gguf": b"one",
    "BF16/gemma-3-1b-it-BF16-00002-of-00002.gguf": b"two",
    "mmproj-model-f16.gguf": b"images",
    "README.md": b"text",
}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        yield server


def fetched(hub):
    return {seen.path.rpartition("/")[2] for seen in hub.requests("/resolve/")}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (None, "gemma-3-1b-it-Q4_K_M.gguf"),
        ("Q8_0", "gemma-3-1b-it-Q8_0.gguf"),
        ("q4_0", "gemma-3-1b-it-Q4_0.gguf"),
        ("gemma-3-1b-it-Q8_0.gguf", "gemma-3-1b-it-Q8_0.gguf"),
    ],
)
def test_one_file_is_fetched(hub, file, name):
    hub.add("org/model-GGUF", MANY)
    path = download("org/model-GGUF", file=file)
    assert (path.name, path.read_bytes()) == (name, MANY[name])
    assert fetched(hub) == {name, "mmproj-model-f16.gguf"}
    assert (path.parent / "mmproj-model-f16.gguf").read_bytes() == b"images"


def test_of_several_encoders_one_is_fetched_and_without_the_hub_none_is_needed(hub, monkeypatch):
    files = {"tiny-Q8_0.gguf": b"q", "mmproj-F32.gguf": b"32", "mmproj-BF16.gguf": b"b16", "mmproj-F16.gguf": b"16"}
    hub.add("org/model-GGUF", files)
    path = download("org/model-GGUF")
    assert fetched(hub) == {"tiny-Q8_0.gguf", "mmproj-BF16.gguf"}
    (path.parent / "mmproj-BF16.gguf").unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert download("org/model-GGUF") == path


def test_shards_are_fetched_together_and_found_again_without_the_hub(hub, monkeypatch):
    hub.add("org/model-GGUF", MANY)
    first = download("org/model-GGUF", file="BF16")
    assert [path.read_bytes() for path in shards_of(first)] == [b"one", b"two"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert download("org/model-GGUF", file="BF16") == first


def test_a_repository_of_one_file_needs_no_choice(hub):
    hub.add("google/gemma-3-4b-it-qat-q4_0-gguf", {"gemma-3-4b-it-q4_0.gguf": b"q", "mmproj-model-f16-4B.gguf": b"i"})
    assert download("google/gemma-3-4b-it-qat-q4_0-gguf").read_bytes() == b"q"


def test_weights_of_a_folder_come_before_a_gguf_file_beside_them(hub):
    hub.add("org/model", {"config.json": b"{}", "model.safetensors": b"w", "model-Q8_0.gguf": b"q"})
    assert download("org/model").is_dir()
    assert download("org/model", file="Q8_0").read_bytes() == b"q"


def test_what_is_not_there_or_not_clear(hub):
    hub.add("org/model-GGUF", {name: content for name, content in MANY.items() if "Q4_K_M" not in name})
    for file in (None, "Q5_0", "gone.gguf", "mmproj-model-f16.gguf"):
        with pytest.raises(CheckpointNotFoundError, match=r"org/model-GGUF:bf16|org/model-GGUF:BF16"):
            download("org/model-GGUF", file=file)
    assert not fetched(hub)
    for file in ("../x", "a/b", "a:b", "", " "):
        with pytest.raises(InputError, match="expected a GGUF file or a quantization after the id"):
            download("org/model-GGUF", file=file)


def test_a_choice_that_is_not_clear_says_what_there_is():
    with pytest.raises(CheckpointNotFoundError, match=r"a-Q8_0\.gguf, b-Q8_0\.gguf"):
        choose(["a-Q8_0.gguf", "b-Q8_0.gguf"], "Q8_0", "org/model")
    with pytest.raises(CheckpointNotFoundError, match="found none"):
        choose(["x.safetensors"], "Q8_0", "org/model")


def test_which_of_several_is_taken():
    precise = ["mmproj-F32.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"]
    assert projectors(precise, "gemma-3-4b-it-Q4_K_M.gguf") == [precise[1], precise[2], precise[0]]
    several = ["mmproj-medgemma-4b-it-F16.gguf", "mmproj-gemma-3-4b-it-Q8_0.gguf"]
    assert projectors(several, "gemma-3-4b-it-Q4_K_M.gguf")[0] == several[1]
    assert projectors(several, "medgemma-4b-it-Q4_K_M.gguf")[0] == several[0]
    assert projectors(["a/mmproj-F16.gguf"], "gemma.gguf") == [] != projectors(["a/mmproj-F16.gguf"], "a/gemma.gguf")
