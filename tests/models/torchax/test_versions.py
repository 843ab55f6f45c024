"""Releases that do not go together are refused before anything is imported or fetched."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.torchax import versions
from langchain_gemma_jax.models.torchax.versions import LIBRARIES, check_versions

GOOD = {"torch": "2.13.0+cpu", "transformers": "5.24.0", "torchax": "0.0.14.dev20261026"}


def test_what_was_tried_together_is_taken():
    assert check_versions(GOOD.get) == tuple(f"{name} {release}" for name, release in GOOD.items())


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("torch", "2.12.1"), ("torch", "2.130.0"), ("torch", "2.15.0"), ("transformers", "4.57.0"),
        ("transformers", "5.25.0"), ("torchax", "0.0.13"), ("torchax", "0.0.14.dev20261027"),
    ],
)  # fmt: skip
def test_another_release_is_refused_with_the_reason(name, release):
    with pytest.raises(InstallationError) as caught:
        check_versions((GOOD | {name: release}).get)
    said = str(caught.value)
    assert release in said
    assert LIBRARIES[name].reason in said
    assert 'pip install "langchain-gemma-jax[torchax]"' in said


def test_what_is_missing_is_named():
    with pytest.raises(InstallationError, match="not installed: torch, torchax"):
        check_versions({"transformers": "5.24.0"}.get)


def test_the_extra_installs_what_is_taken():
    extras = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    pinned = dict(each.partition(";")[0].strip().split("==") for each in extras["torchax"])
    assert pinned.keys() == LIBRARIES.keys()
    for name, tested in LIBRARIES.items():
        assert tested.fits(pinned[name].removesuffix(".*"))


def test_they_are_looked_at_before_a_folder_is(monkeypatch, tmp_path):
    monkeypatch.setattr(versions.check_versions, "__defaults__", ({}.get,))
    with pytest.raises(InstallationError, match="not installed"):
        load(f"torchax:{tmp_path / 'nowhere'}")
