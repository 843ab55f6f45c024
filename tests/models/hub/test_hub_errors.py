"""The errors that a user gets for a Hub that refuses, or makes no sense."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import (
    CorruptCheckpointError,
    GatedModelError,
    HubError,
    ModelNotOnHubError,
    OfflineError,
)
from langchain_gemma_jax.models.hub.download import download
from tests.models.hub.hub_files import FILES, TOKEN, WEIGHTS, blobs, file_request, held


@pytest.mark.parametrize("revision", ["v2", "0" * 40])
def test_an_unknown_revision_is_named(hub, revision):
    hub.add("org/model", FILES)
    with pytest.raises(ModelNotOnHubError, match=rf"org/model has no revision '{revision}' on {hub.url}"):
        download("org/model", revision=revision)


@pytest.mark.parametrize("token", [None, TOKEN])
def test_an_unknown_id_is_named(hub, token):
    hub.known_tokens.add(TOKEN)
    with pytest.raises(ModelNotOnHubError, match=rf"There is no model 'org/modle' on {hub.url}; or it is private") as e:
        download("org/modle", token=token)
    assert ("no token was sent" in str(e.value)) == (token is None)
    assert "Canary" not in str(e.value)


@pytest.mark.parametrize(
    ("token", "story"),
    [
        (None, "no token was sent"),
        (TOKEN, "the token that was sent gives no access"),
        ("hf_Canary2", "gives no access"),
    ],
)
def test_a_gate_says_how_to_open_it(hub, token, story):
    hub.add("org/model", FILES, gated=True, tokens=("hf_of_somebody_else",))
    hub.known_tokens.add(TOKEN)  # a good token, of somebody who has not accepted; the third is no token at all
    with pytest.raises(GatedModelError) as caught:
        download("org/model", token=token)
    said = str(caught.value)
    assert story in said
    assert f"{hub.url}/org/model\n" in said
    assert all(way in said for way in ("token=", "HF_TOKEN", "hf auth login", f"{hub.url}/settings/tokens"))
    assert "Canary" not in said
    assert "Canary" not in repr(caught.value.__cause__)


def test_a_password_in_the_endpoint_is_not_shown(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("//", "//user:Canary@"))
    with pytest.raises(ModelNotOnHubError) as caught:
        download("org/model")
    assert hub.url in str(caught.value)
    assert "Canary" not in str(caught.value)


def test_a_hub_that_stumbles_is_asked_again(hub, pauses):
    hub.add("org/model", FILES)
    hub.fail("/api/", times=2, status=503)
    hub.fail("HEAD /org/model/resolve/", times=2, status=500)
    assert held(download("org/model")) == FILES
    assert pauses[:2] == [1.0, 3.0]


def test_an_answer_that_makes_no_sense_is_an_error_of_the_hub(hub):
    hub.add("org/model", FILES)
    hub.fail("/api/", times=9, status=418)
    with pytest.raises(HubError, match=r"refused the request \(HTTP 418\)"):
        download("org/model")


def test_a_model_that_was_disabled_is_said_to_be_so(hub):
    hub.add("org/model", FILES)
    hub.fail("/api/", status=403, message="Access to this resource is disabled.")
    with pytest.raises(ModelNotOnHubError, match="org/model was disabled"):
        download("org/model")


def test_a_mirror_that_leaves_out_what_is_needed_is_blamed(hub):
    hub.add("org/model", FILES)
    hub.fail("HEAD /org/model/resolve/", times=99, without="X-Repo-Commit")
    with pytest.raises(HubError, match=rf"{hub.url} does not answer as a Hub does. Check HF_ENDPOINT"):
        download("org/model")


def test_an_offline_switch_that_was_on_at_import_is_named(hub, monkeypatch):
    from huggingface_hub import constants

    hub.add("org/model", FILES)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OfflineError, match="HF_HUB_OFFLINE was set when huggingface_hub was imported"):
        download("org/model")
    assert hub.requests() == []


def test_a_hub_that_falls_silent_after_the_list_is_no_network(hub, pauses):
    hub.add("org/model", FILES)
    hub.fail("/tree/", times=9, status=503)
    with pytest.raises(OfflineError, match=r"HTTP 503"):
        download("org/model")


@pytest.mark.parametrize("body", [WEIGHTS[:-1], WEIGHTS + b"x", b""])
@pytest.mark.parametrize("liar", ["the transfer", "the announcement too"])
def test_a_file_of_another_size_is_not_taken_for_the_file(hub, tmp_path, body, liar):
    commit = hub.add("org/model", FILES)
    if liar == "the announcement too":
        hub.fail(file_request("HEAD", commit), body=body)
    hub.fail(file_request("GET", commit), body=body)
    with pytest.raises(CorruptCheckpointError, match=rf"expected .*the Hub announced.*{len(body)}") as e:
        download("org/model")
    assert "\n" not in str(e.value)
    assert ".." not in str(e.value)
    assert len(blobs(tmp_path)) < len(FILES)  # others that were under way may be missing
    assert body not in [path.read_bytes() for path in tmp_path.glob("cache/models--*/blobs/*")]
    hub.faults.clear()
    assert held(download("org/model")) == FILES


def test_a_cache_that_cannot_be_written_is_named(hub, monkeypatch, tmp_path):
    hub.add("org/model", FILES)
    (tmp_path / "file").touch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(HubError, match=r"file/cache, cannot be used: Not a directory.*HF_HUB_CACHE"):
        download("org/model")
