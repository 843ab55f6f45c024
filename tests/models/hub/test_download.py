"""Models by id, from a small Hub on this machine: what is fetched, what is refused, and what a user is told."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    HubError,
    OfflineError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.hub import download as hub_module
from langchain_gemma_jax.models.hub.download import download
from langchain_gemma_jax.models.hub.progress import Transfer
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.recipes import Recipe
from tests.hub_server import HubServer
from tests.models.hub.hub_files import FILES, TOKEN, WEIGHTS, blobs, file_request, held, weights
from tests.tiny_embedder import tiny_embedder
from tests.tiny_gemma import tiny_gemma, tiny_tensors

ROOT = Path(__file__).parents[3]


UNWANTED = {
    ".gitattributes": b"x",
    "README.md": b"# A model",
    "consolidated.safetensors": b"a second copy",
    "consolidated/model.safetensors": b"a third copy",
    "modeling_gemma.py": b"raise SystemExit",
    "model.gguf": b"GGUF",
    "onnx/config.json": b"{}",
    "optimizer.pt": b"pickle",
    "pytorch_model.bin": b"pickle",
}


# What is fetched.


def test_the_folder_holds_what_is_read_and_nothing_else(hub):
    commit = hub.add("org/model", FILES | UNWANTED)
    folder = download("org/model")
    assert held(folder) == FILES
    assert folder.name == commit


def test_the_bytes_of_a_download_are_counted_and_those_in_the_cache_are_there_at_once(hub):
    class Counting(Transfer):
        arrived = 0

        def count(self, arrived):
            self.arrived += arrived
            super().count(arrived)

    commit, total, resumed = hub.add("org/model", FILES), sum(map(len, FILES.values())), []
    for missing in (None, "model.safetensors", None):
        if missing:
            for path in download("org/model").parents[1].rglob("*"):
                if path.is_file() and path.read_bytes() == WEIGHTS:
                    path.unlink()
        transfer = Counting()
        assert transfer.counts == (0, 0)
        download("org/model", transfer=transfer)
        assert (transfer.counts, transfer.commit) == ((total, total), commit)
        resumed.append(transfer.arrived)
    assert resumed == [total, len(WEIGHTS), 0]
    fetched = {seen.path.rpartition("/")[2] for seen in hub.requests("/resolve/")}
    assert fetched == FILES.keys()


def test_shards_come_with_their_index_and_without_a_second_copy(hub):
    shards = {f"model-0000{i}-of-00002.safetensors": weights(i) for i in (1, 2)}
    index = json.dumps({"weight_map": dict.fromkeys("ab", "model-00001-of-00002.safetensors")}).encode()
    wanted = {"config.json": b"{}", "tokenizer.model": b"s", "model.safetensors.index.json": index} | shards
    copies = {"model.safetensors": b"one", "consolidated-00001-of-00002.safetensors": b"two"}
    hub.add("org/model", wanted | copies)
    assert held(download("org/model")) == wanted


def test_shards_of_other_names_come_too(hub):
    files = {"config.json": b"{}", "model.safetensors.index.json": b"{}", "part1.safetensors": WEIGHTS}
    hub.add("org/model", files)
    assert held(download("org/model")) == files


def test_names_are_taken_literally(hub):
    hub.add("org/model", {"config.json": b"{}", "w[12].safetensors": b"a", "w1.safetensors.bak": b"b"})
    assert held(download("org/model")).keys() == {"config.json", "w[12].safetensors"}


@pytest.mark.parametrize(
    "pickles", [{"pytorch_model.bin": b"p"}, {"a/model.pt": b"p"}, {"model.ckpt": b"p", "deep/model.safetensors": b"s"}]
)
def test_a_pickle_is_refused_and_not_even_fetched(hub, pickles):
    hub.add("org/model", {"config.json": b"{}"} | pickles)
    with pytest.raises(UnsafeCheckpointError, match=r"org/model: expected .*\.safetensors.* pickles: ") as caught:
        download("org/model")
    assert next(iter(pickles)) in str(caught.value)
    assert hub.requests("/resolve/") == []


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": b"x", "data.csv": b"x"},
        {"config.json": b"{}", "mmproj-model.gguf": b"x"},
        {"model.safetensors": WEIGHTS},
        {"consolidated/config.json": b"{}", "consolidated/model.safetensors": WEIGHTS},
    ],
)
def test_a_repository_without_a_model_is_said_to_be_so(hub, files):
    hub.add("org/data", files)
    with pytest.raises(CheckpointNotFoundError, match=r"org/data: expected config\.json and \*\.safetensors") as caught:
        download("org/data")
    assert all(name in str(caught.value) for name in files)
    assert hub.requests("/resolve/") == []


ADAPTER = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"a"}


@pytest.mark.parametrize("files", [ADAPTER, ADAPTER | {"config.json": b"{}", "training_args.bin": b"p"}])
def test_an_adapter_alone_is_said_to_be_one(hub, files):
    hub.add("org/model", files)
    with pytest.raises(UnsupportedModelError, match=r"org/model: .* an adapter \(LoRA\).*adapter="):
        download("org/model")
    assert hub.requests("/resolve/") == []


def test_an_adapter_beside_a_model_is_left_there(hub):
    hub.add("org/model", FILES | ADAPTER)
    assert held(download("org/model")) == FILES


def test_of_an_adapter_come_its_two_files_or_one_gguf_file(hub, monkeypatch):
    extra = {"README.md": b"x", "optimizer.pt": b"p", "adapter_model.bin": b"p", "tokenizer.json": b"{}"}
    hub.add("org/lora", ADAPTER | extra)
    assert held(download("org/lora", is_adapter=True)) == ADAPTER
    hub.add("org/both", FILES | ADAPTER)
    assert held(download("org/both", is_adapter=True)) == ADAPTER
    hub.add("org/file", {"my-lora-f16.gguf": b"GGUF", "README.md": b"x"})
    file = download("org/file", is_adapter=True)
    assert (file.name, held(file.parent)) == ("my-lora-f16.gguf", {"my-lora-f16.gguf": b"GGUF"})
    hub.add("org/files", {"a.gguf": b"1", "b.gguf": b"2"} | ADAPTER)
    assert download("org/files", is_adapter=True, file="b.gguf").read_bytes() == b"2"
    hub.forget_requests()
    assert held(download("org/lora", is_adapter=True)) == ADAPTER
    assert hub.requests("/resolve/") == [], "it is in the cache"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert held(download("org/lora", is_adapter=True)) == ADAPTER
    assert download("org/file", is_adapter=True) == file


@pytest.mark.parametrize(
    ("files", "error", "words"),
    [
        ({"adapter_config.json": b"{}", "adapter_model.bin": b"p"}, UnsafeCheckpointError, "conversion of the adapter"),
        (FILES, CheckpointNotFoundError, r"org/lora: expected adapter_config\.json and .* given as model="),
        ({"a.gguf": b"1", "b.gguf": b"2"}, CheckpointNotFoundError, "one GGUF file"),
        ({}, CheckpointNotFoundError, "found nothing"),
    ],
)
def test_a_repository_without_an_adapter_is_said_to_be_so(hub, files, error, words):
    hub.add("org/lora", files)
    with pytest.raises(error, match=words):
        download("org/lora", is_adapter=True)
    assert hub.requests("/resolve/") == []


def test_a_second_time_transfers_nothing(hub):
    hub.add("org/model", FILES)
    first = download("org/model")
    hub.forget_requests()
    assert download("org/model") == first
    assert hub.requests("/resolve/") == []


def test_what_a_new_commit_shares_with_the_old_is_not_fetched_again(hub):
    hub.add("org/model", FILES)
    old = download("org/model")
    hub.forget_requests()
    hub.add("org/model", FILES | {"generation_config.json": b'{"eos_token_id": [1, 106]}'})
    new = download("org/model")
    assert new != old
    assert [seen.path.rpartition("/")[2] for seen in hub.requests("GET /org/model/resolve/")] == [
        "generation_config.json"
    ]
    assert held(old) == FILES


# Revisions.


def test_a_branch_a_tag_and_a_commit_are_found(hub):
    old = hub.add("org/model", FILES, branch="v1")
    new = hub.add("org/model", FILES | {"model.safetensors": weights(2)})
    hub.add("org/model", FILES, branch="refs/pr/1")
    assert download("org/model").name == new
    assert download("org/model", revision="v1").name == old
    assert download("org/model", revision=new).name == new
    assert held(download("org/model", revision="refs/pr/1")) == FILES


def test_a_commit_that_is_complete_in_the_cache_needs_no_network(hub):
    commit = hub.add("org/model", FILES)
    folder = download("org/model")
    hub.stop()
    with warnings.catch_warnings(action="error"):
        assert download("org/model", revision=commit) == folder
    assert hub.requests() != []


@pytest.mark.parametrize("damage", ["missing", "shorter"])
def test_a_commit_that_is_not_complete_is_completed(hub, damage):
    commit = hub.add("org/model", FILES)
    path = download("org/model", revision=commit) / "model.safetensors"
    if damage == "missing":
        path.resolve().unlink()
        path.unlink()
    else:
        path.resolve().write_bytes(WEIGHTS[:50])
    assert held(download("org/model", revision=commit)) == FILES


def test_a_commit_that_came_file_by_file_is_looked_at_once_more(hub):
    from huggingface_hub import hf_hub_download

    commit = hub.add("org/model", FILES)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        hf_hub_download("org/model", name, revision=commit, endpoint=hub.url, cache_dir=os.environ["HF_HUB_CACHE"])
    assert held(download("org/model", revision=commit)) == FILES


def test_a_branch_that_moves_during_the_transfer_is_followed(hub):
    hub.add("org/model", FILES)
    moved = FILES | {"model.safetensors": weights(2, size=200)}
    second_look = "/api/models/org/model/revision/main"
    hub.fail(second_look, action=lambda: None)
    hub.fail(second_look, action=lambda: hub.add("org/model", moved))
    assert held(download("org/model")) == moved


def test_a_branch_that_never_rests_is_given_up(hub):
    count = iter(range(100))

    def move():
        hub.add("org/model", FILES | {"generation_config.json": str(next(count)).encode()})

    move()
    hub.fail("/api/models/org/model/revision/main", times=100, action=move)
    with pytest.raises(HubError, match=r"'main' moved 3 times.*Pin a commit"):
        download("org/model")


# Tokens, gates and licenses.


@pytest.mark.parametrize("kind", ["gated", "private"])
@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_token_opens_what_is_closed(hub, monkeypatch, kind, way):
    hub.add("org/model", FILES, tokens=(TOKEN,), **{kind: True})
    if way == "environment":
        monkeypatch.setenv("HF_TOKEN", TOKEN)
    folder = download("org/model", token=f" {TOKEN}\n" if way == "argument" else None)
    assert held(folder) == FILES
    assert {seen.token for seen in hub.requests()} == {TOKEN}


def test_the_argument_beats_the_environment(hub, monkeypatch):
    hub.add("org/model", FILES, gated=True, tokens=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    assert held(download("org/model", token=TOKEN)) == FILES


# No network.


@pytest.mark.parametrize("value", ["1", "true", "ON"])
def test_offline_by_choice_uses_the_cache_without_a_word(hub, monkeypatch, value):
    hub.add("org/model", FILES)
    folder = download("org/model")
    hub.forget_requests()
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with warnings.catch_warnings(action="error"):
        assert download("org/model") == folder
    assert hub.requests() == []


def test_offline_by_choice_without_a_copy_says_what_to_do(hub, monkeypatch, tmp_path):
    hub.add("org/model", FILES)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(OfflineError, match=r"HF_HUB_OFFLINE is set; and the local cache.*pass their folder") as caught:
        download("org/model", revision="v1")
    assert str(tmp_path / "cache") in str(caught.value)
    assert "'v1'" in str(caught.value)
    assert hub.requests() == []


NO_NETWORK = {
    "nobody listens": lambda hub: hub.stop(),
    "no answer": lambda hub: hub.fail("", times=99, silent=True),
    "broken": lambda hub: hub.fail("", times=99, status=503),
    "busy": lambda hub: hub.fail("", times=99, status=429),
    "a login portal": lambda hub: hub.fail("/api/", times=99, body=b"<html>Log in to the hotel's network</html>"),
    "another program": lambda hub: hub.fail("/api/", times=99, body=b"[1, 2]"),
    "a Hub without commits": lambda hub: hub.fail("/api/", times=99, body=b'{"id": "org/model", "siblings": []}'),
}


@pytest.fixture(params=NO_NETWORK)
def no_network(request, hub, pauses, monkeypatch):
    """Ends the network, in each way in turn."""
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    return lambda: NO_NETWORK[request.param](hub)


@pytest.mark.long
def test_without_network_or_copy_the_message_says_what_to_do(hub, no_network):
    hub.add("org/model", FILES, tokens=(TOKEN,))
    no_network()
    with pytest.raises(OfflineError, match=r"org/model cannot be fetched: http://127.*pass their folder") as caught:
        download("org/model", token=TOKEN)
    assert hub.url in str(caught.value)
    assert "Canary" not in str(caught.value)


@pytest.mark.long
def test_without_network_a_complete_copy_is_used_with_one_warning(hub, no_network):
    hub.add("org/model", FILES)
    folder = download("org/model")
    no_network()
    with pytest.warns(UserWarning, match=r"Using the copy of org/model in the local cache") as caught:
        assert download("org/model") == folder
    (warning,) = caught
    assert str(folder) in str(warning.message)
    assert hub.url in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("name", FILES)
def test_without_network_an_incomplete_copy_is_not_used(hub, name):
    hub.add("org/model", FILES)
    (download("org/model") / name).unlink()
    hub.stop()
    with pytest.raises(OfflineError, match="no complete copy"):
        download("org/model")


@pytest.fixture
def copy_of_another_program(hub):
    """Fetches files one by one, as other programs do: no list of what a complete copy holds is kept."""
    from huggingface_hub import hf_hub_download

    def fetch(files):
        hub.add("org/model", files)
        for name in files:
            path = hf_hub_download("org/model", name, endpoint=hub.url, cache_dir=os.environ["HF_HUB_CACHE"])
        return Path(path).parent

    return fetch


@pytest.mark.parametrize("names", [FILES.keys(), {"config.json", "model.safetensors", "tokenizer.json"}])
def test_without_network_the_copy_of_another_program_is_used(hub, copy_of_another_program, names):
    folder = copy_of_another_program({name: FILES[name] for name in names})
    hub.stop()
    with pytest.warns(UserWarning, match="Using the copy"):
        assert download("org/model") == folder


INDEX = json.dumps({"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"config.json": None},
        {"tokenizer.json": None},
        {"model.safetensors": None},
        {"model.safetensors": WEIGHTS[:-1]},
        {"model.safetensors": None, "model-00001-of-00002.safetensors": WEIGHTS, "model.safetensors.index.json": INDEX},
    ],
)
def test_without_network_half_a_copy_of_another_program_is_not_used(hub, copy_of_another_program, changes):
    copy_of_another_program({name: data for name, data in (FILES | changes).items() if data is not None})
    hub.stop()
    with pytest.raises(OfflineError, match="no complete copy"):
        download("org/model")


def test_files_that_never_came_are_noticed(hub, pauses):
    """huggingface_hub gives the folder as it is when it cannot ask what should be in it."""
    commit = hub.add("org/model", FILES)
    kept = Path(os.environ["HF_HUB_CACHE"]) / "models--org--model"
    (kept / "snapshots" / commit).mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(commit)
    hub.fail("/api/", action=lambda: None)  # our own question is answered, its is not
    hub.fail("/api/", times=9, status=503)
    with pytest.raises(OfflineError, match=r"stopped answering before chat_template\.jinja was there"):
        download("org/model")


# Transfers that go wrong.


def test_a_connection_that_breaks_is_taken_up_where_it_broke(hub, pauses):
    big = FILES | {"model.safetensors": os.urandom(11_000_000)}
    commit = hub.add("org/model", big)
    get = file_request("GET", commit)
    hub.fail(get, cut_after=10_900_000)
    assert held(download("org/model")) == big
    written = 10 * 1024 * 1024  # huggingface_hub writes in pieces of that size
    assert [seen.range for seen in hub.requests(get)] == [None, f"bytes={written}-"]


def test_a_transfer_that_fails_keeps_the_files_that_are_whole_and_no_part_of_another(hub, pauses, tmp_path):
    commit = hub.add("org/model", FILES)
    hub.fail(file_request("GET", commit), times=99, cut_after=0)
    with pytest.raises(OfflineError, match=f"{hub.url} cannot be reached"):
        download("org/model")
    assert len(blobs(tmp_path)) == len(FILES) - 1
    assert not any(name.endswith(".incomplete") for name in blobs(tmp_path))
    hub.faults.clear()
    hub.forget_requests()
    assert held(download("org/model")) == FILES
    assert [seen.path for seen in hub.requests("GET /org/model/resolve/")] == [file_request("", commit).strip()]


def test_a_cached_file_that_lost_its_end_is_fetched_again(hub):
    hub.add("org/model", FILES)
    (download("org/model") / "model.safetensors").resolve().write_bytes(WEIGHTS[:50])
    hub.forget_requests()
    assert held(download("org/model")) == FILES
    assert [seen.path.rpartition("/")[2] for seen in hub.requests("GET /org/model/resolve/")] == ["model.safetensors"]


def test_a_file_of_the_user_s_that_a_snapshot_links_to_is_never_deleted(hub, tmp_path):
    hub.add("org/model", FILES)
    theirs = tmp_path / "mine.safetensors"
    theirs.write_bytes(b"my own weights")
    link = download("org/model") / "model.safetensors"
    link.unlink()
    link.symlink_to(theirs)
    assert held(download("org/model")) == FILES
    assert theirs.read_bytes() == b"my own weights"


def test_what_does_not_fit_is_not_begun(hub, monkeypatch, tmp_path):
    hub.add("org/model", FILES)
    total = sum(map(len, FILES.values()))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=total - 1))
    with pytest.raises(HubError, match=rf"needs {total:,} bytes more.*has {total - 1:,} bytes free.*HF_HUB_CACHE") as e:
        download("org/model")
    assert str(tmp_path / "cache") in str(e.value)
    assert hub.requests("GET /org/model/resolve/") == []
    assert blobs(tmp_path) == []


def test_what_is_cached_already_needs_no_room(hub, monkeypatch):
    hub.add("org/model", FILES)
    download("org/model")
    changed = FILES | {"tokenizer.json": b"{}"}
    hub.add("org/model", changed)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2))
    assert held(download("org/model")) == changed


def test_room_is_told_in_gigabytes_where_it_is_much(hub, monkeypatch):
    assert hub_module._size(54_857_000_000) == "54.9 GB"
    assert hub_module._size(999_999_999) == "999,999,999 bytes"


@pytest.mark.long
def test_two_processes_at_once_both_get_the_whole_model(hub):
    big = FILES | {"model.safetensors": os.urandom(3_000_000)}
    hub.add("org/model", big)
    both = threading.Barrier(2)
    hub.fail("revision/main?blobs", times=2, action=lambda: both.wait(300))
    script = "from langchain_gemma_jax.models.hub.download import download; print(download('org/model'))"
    command = [sys.executable, "-W", "error", "-c", script]
    children = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    folders = set()
    for child in children:
        out, err = child.communicate()
        assert (child.returncode, err) == (0, "")
        folders.add(out.strip())
    (folder,) = folders
    assert held(Path(folder)) == big
    assert not both.broken


# Where, and what one sees of it.


@pytest.mark.parametrize(
    ("variable", "below"), [("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")]
)
def test_the_cache_is_where_the_environment_says_at_the_call(hub, monkeypatch, tmp_path, variable, below):
    hub.add("org/model", FILES)
    for other in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(other, raising=False)
    for place in (tmp_path / "one", tmp_path / "two"):
        monkeypatch.setenv(variable, str(place))
        assert download("org/model").is_relative_to(place / below)


def test_the_hub_is_the_one_that_the_environment_names_at_the_call(hub, monkeypatch):
    hub.add("org/model", FILES)
    download("org/model")
    with HubServer() as mirror:
        commit = mirror.add("org/model", FILES, branch="only-there")
        monkeypatch.setenv("HF_ENDPOINT", mirror.url + "/")
        assert download("org/model", revision="only-there").name == commit


@pytest.fixture
def bars_allowed(monkeypatch):
    """Undoes what the tests' own HF_HUB_DISABLE_PROGRESS_BARS did when huggingface_hub was imported."""
    import huggingface_hub.utils.tqdm  # noqa: F401

    monkeypatch.setattr(sys.modules["huggingface_hub.utils.tqdm"], "HF_HUB_DISABLE_PROGRESS_BARS", None)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("progress", "stderr", "shown"),
    [
        (None, Terminal, True),
        (None, io.StringIO, False),
        (True, io.StringIO, True),
        (False, Terminal, False),
    ],
)
@pytest.mark.usefixtures("bars_allowed")
def test_progress_is_shown_on_a_terminal_or_when_asked_for(hub, monkeypatch, progress, stderr, shown):
    hub.add("org/model", FILES)
    monkeypatch.setattr(sys, "stderr", screen := stderr())
    download("org/model", progress=progress)
    assert ("100%" in screen.getvalue()) == shown
    assert shown or screen.getvalue() == ""


def test_no_standard_error_is_no_terminal(hub, monkeypatch, bars_allowed):
    hub.add("org/model", FILES)
    monkeypatch.setattr(sys, "stderr", None)
    assert held(download("org/model")) == FILES


def test_importing_does_not_import_huggingface_hub():
    script = "import sys, langchain_gemma_jax.models.hub.download; print({'huggingface_hub', 'jax'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


# And all of it together.


@pytest.mark.parametrize("shards", [1, 2])
def test_a_model_loads_by_its_id(hub, shards):
    hub.add("org/tiny", tiny_gemma(shards=shards))
    stored = {name.removesuffix(".weight"): tensor for name, tensor in tiny_tensors().items()}
    with load("org/tiny", recipe=Recipe(dtype="float32"), progress=False) as model:
        params = jax.tree.map(np.asarray, model.params)
        assert model.tokenizer.decode(model.tokenizer.encode_text("HELLO hub")) == "HELLO hub"
    assert model.name == "org/tiny"
    assert model.config.generation == "gemma3"
    assert model.generation_defaults["top_k"] == 64
    np.testing.assert_array_equal(params["embed"], stored["model.embed_tokens"])
    np.testing.assert_array_equal(params["final_norm"], 1 + stored["model.norm"])
    assert len(params["layers"]) == 2
    for index, layer in enumerate(params["layers"]):
        for ours, theirs in {
            "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
            "attn_out": ["self_attn.o_proj"],
            "gate_up": ["mlp.gate_proj", "mlp.up_proj"],
            "down": ["mlp.down_proj"],
        }.items():
            rows = np.concatenate([stored[f"model.layers.{index}.{name}"] for name in theirs])
            np.testing.assert_array_equal(layer[ours], rows)
        np.testing.assert_array_equal(layer["attn_norm"], 1 + stored[f"model.layers.{index}.input_layernorm"])


def test_the_python_on_the_page_about_the_hub_runs(hub, monkeypatch, tmp_path, capsys):
    blocks = re.findall(r"^```text\n(.*?)^```$", (ROOT / "docs" / "hub.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    hub.add("google/gemma-3-1b-it", tiny_gemma(shards=2), gated=True, tokens=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    names = {"my_token": TOKEN}
    for block in blocks:
        exec(block, names)  # in one namespace, from top to bottom, as a reader would
    said = capsys.readouterr().out
    assert "model.safetensors.index.json" in said
    assert "ModelNotOnHubError: There is no model 'google/gemma-3-1b-lt'" in said
    assert names["model"].name == "my-gemma"


def test_an_embedding_model_comes_with_the_folders_beside_it(hub, tmp_path):
    whole = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tiny_embedder(tmp_path / "model").rglob("*")
        if path.is_file()
    }
    files = {name.removeprefix("model/"): content for name, content in whole.items() if name.startswith("model/")}
    unread = {"2_Dense/pytorch_model.bin": b"pickle", "1_Pooling/more/config.json": b"{}", "README.md": b"Hello"}
    hub.add("org/embedder", files | unread)
    folder = download("org/embedder")
    assert held(folder) == files
    assert download("org/embedder", revision=folder.name) == folder
    with load("org/embedder") as model:  # links of the Hub's own cache lead where it keeps contents
        assert model.architecture.embedding_width == 16
