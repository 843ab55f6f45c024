"""A user's own folders, with a file of tools and a server of them."""

from __future__ import annotations

import pytest
from huggingface_hub import constants

from tests.cli.own_tools import SERVER, TOOLS
from tests.own_engine import own_engine


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiled programs are kept from test to test of this file."""
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o700)
    return folder


@pytest.fixture
def own(tmp_path, programs, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(programs))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "server.py").write_text(SERVER)
    with own_engine():
        yield tmp_path


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Where programs are kept in this test."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(tmp_path / "programs"))
    return tmp_path / "programs"
