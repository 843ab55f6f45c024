"""An impossible id, revision, token or endpoint is refused before any request."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.hub.download import download
from langchain_gemma_jax.models.hub.hub_request import make_request
from tests.models.hub.hub_files import TOKEN


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "gemma",
        "org/",
        "/name",
        "org/a/b",
        "./gemma",
        "/models/gemma",
        "org\\name",
        "org/na me",
        "org/näme",
        "org/name\n",
        "org/../etc",
        "org/a--b",
        "org/a..b",
        "org/.name",
        "org/name-",
        "org/name.git",
        "org/" + "x" * 97,
        "https://huggingface.co/org/name",
        Path("org/name"),
        None,
    ],
)
def test_what_cannot_be_an_id_is_refused_before_any_request(hub, wrong):
    with pytest.raises(InputError, match=r"organization/name.*google/gemma-3-1b-it") as caught:
        download(wrong)
    assert repr(wrong) in str(caught.value)
    assert hub.requests() == []


@given(st.from_regex(r"[\w.-]{1,20}/[\w.-]{1,20}", fullmatch=True))
def test_an_id_that_is_let_through_is_one_for_huggingface_hub_too(model_id):
    from huggingface_hub.utils import validate_repo_id

    try:
        make_request(model_id, None, None)
    except InputError:
        return
    validate_repo_id(model_id)


@pytest.mark.parametrize(
    "wrong", ["", "../../x", "/main", "-x", "a b", "main\n", "a..b", "a//b", "a/", ".hidden", "a/.b", "v1^", "a:b", 7]
)
def test_what_cannot_be_a_revision_is_refused_before_any_request(hub, wrong):
    with pytest.raises(InputError, match=r"revision: expected a branch, a tag or a commit"):
        download("org/model", revision=wrong)
    assert hub.requests() == []


@pytest.mark.parametrize("wrong", ["", " ", f"{TOKEN} b", f"{TOKEN}\nx", f"{TOKEN}é", f"{TOKEN}\0"])
def test_what_cannot_be_a_token_is_refused_and_not_shown(hub, wrong):
    with pytest.raises(InputError, match="token: expected") as caught:
        download("org/model", token=wrong)
    assert "Canary" not in str(caught.value)
    assert hub.requests() == []


@pytest.mark.parametrize("wrong", [f"{TOKEN} b", f"{TOKEN}é"])
def test_what_cannot_be_a_token_is_refused_in_the_environment_too(hub, monkeypatch, wrong):
    monkeypatch.setenv("HF_TOKEN", wrong)
    with pytest.raises(InputError, match="token: expected") as caught:
        download("org/model")
    assert "Canary" not in str(caught.value)
    assert hub.requests() == []


def test_an_endpoint_that_is_no_url_is_refused(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "localhost:8000")
    with pytest.raises(InputError, match=r"HF_ENDPOINT: expected a URL such as https://huggingface\.co"):
        download("org/model")


def test_a_token_is_not_in_the_request_s_text():
    assert "Canary" not in repr(make_request("org/model", None, TOKEN))
