"""Tools of a server that is a process of its own: it may say nothing, err, or be gone."""

from __future__ import annotations

import os
import sys

import pytest

from langchain_gemma_jax.cli.tools import mcp_server
from langchain_gemma_jax.cli.tools.mcp_server import McpServer
from langchain_gemma_jax.errors import InputError
from tests.cli.own_tools import SERVER


@pytest.mark.long
def test_a_server_that_says_nothing_errs_or_is_gone(own, monkeypatch):
    monkeypatch.setattr(mcp_server, "CALL_SECONDS", 0.2)
    server = f"{sys.executable} server.py"
    with McpServer(server) as found:
        assert found.tools[0]["function"]["name"] == "add"
        assert found.call("add", {"a": 1, "b": 2}) == "3"
        with pytest.raises(InputError, match=r"^1\n"):
            found.call("add", {"a": -1, "b": 2})
        with pytest.raises(InputError, match=r"ended before it answered tools/call\. It wrote: .*KeyError"):
            found.call("add", {})
        with pytest.raises(InputError, match="ended before"):
            found.call("add", {"a": 1, "b": 2})
    (own / "slow.py").write_text(SERVER.replace("given = asked", "import time; time.sleep(600); given = asked"))
    with McpServer(f"{sys.executable} slow.py") as found:
        with pytest.raises(InputError, match="said nothing to tools/call within"):
            found.call("add", {"a": 1, "b": 2})
        monkeypatch.setattr(mcp_server, "END_SECONDS", 0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(found._process.pid, 0)
    monkeypatch.setattr(mcp_server, "START_SECONDS", 0.3)
    with pytest.raises(InputError, match="said nothing to initialize"):
        McpServer(f"{sys.executable} -c 'import time; time.sleep(600)'")
