"""An adapter of the Hub changes what a chat model says, as the same files in a folder do, and is fetched once."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import engine
from langchain_gemma_jax.errors import GatedModelError, ModelNotOnHubError
from tests.hub_server import HubServer
from tests.models.adapters.files import gguf_file, peft_folder, random_pairs

TOKEN = "hf_" + "a" * 30


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        yield server


def test_an_adapter_by_its_id_on_the_hub(chat_of, folder_of, hub, tmp_path):
    config = engine().load(str(folder_of("gemma4"))).model.config
    pairs, model = random_pairs(config, 3), chat_of("gemma4", logprobs=True)

    def scores(**how):
        return [each["logprob"] for each in model.invoke("Hi", **how).response_metadata["logprobs"]["content"]]

    folder = peft_folder(tmp_path / "lora", pairs)
    hub.add("org/lora", {path.name: path.read_bytes() for path in folder.iterdir()})
    hub.add("org/lora-gguf", {"lora.gguf": gguf_file(tmp_path / "x.gguf", pairs, 8.0, "gemma4").read_bytes()})
    wanted = pytest.approx(scores(adapter=folder), abs=1e-4)  # it has another slot
    assert wanted != scores()
    for name in ("org/lora", "org/lora-gguf", "org/lora-gguf:lora.gguf"):
        assert scores(adapter=name) == wanted, name
    assert "org/lora" in next(each.adapters for each in engine().models() if each.adapters)
    hub.forget_requests()
    assert scores(adapter="org/lora") == wanted
    assert hub.seen == [], "the Hub is asked once"


def test_an_adapter_that_the_hub_has_not_or_does_not_give(chat_of, folder_of, hub, tmp_path):
    with pytest.raises(ModelNotOnHubError) as caught:
        chat_of("gemma4", adapter="org/none").invoke("Hi")
    assert any("If a folder or file was meant" in note for note in caught.value.__notes__)
    config = engine().load(str(folder_of("gemma4"))).model.config
    folder = peft_folder(tmp_path / "lora", random_pairs(config, 1))
    hub.add("org/gated", {path.name: path.read_bytes() for path in folder.iterdir()}, gated=True, tokens=(TOKEN,))
    with pytest.raises(GatedModelError):
        chat_of("gemma4", adapter="org/gated").invoke("Hi")
    assert chat_of("gemma4", adapter="org/gated", token=TOKEN).invoke("Hi").content
