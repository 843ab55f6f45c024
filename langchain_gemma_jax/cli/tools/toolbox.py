"""All tools of a chat by name, from files and from servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from langchain_gemma_jax.cli.tools.mcp_server import McpServer
from langchain_gemma_jax.cli.tools.python_file import tools_of
from langchain_gemma_jax.errors import InputError


class Toolbox:
    """Tools of Python files and of MCP servers. ``with`` ends the servers."""

    def __init__(self, files: Sequence[str], commands: Sequence[str]) -> None:
        self.bound: list[Any] = []  # as bind_tools takes them
        self._run: dict[str, Callable[[dict[str, Any]], object]] = {}
        self._servers = ExitStack()
        try:
            for file in files:
                for tool in tools_of(file):
                    self._add(tool.name, tool, tool.invoke)
            for command in commands:
                server = self._servers.enter_context(McpServer(command))
                for listed in server.tools:
                    name = listed["function"]["name"]
                    self._add(name, listed, partial(server.call, name))
        except BaseException:
            self._servers.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    @property
    def names(self) -> list[str]:
        return list(self._run)

    def call(self, name: str, given: dict[str, Any]) -> tuple[str, bool]:
        """Run a tool. Return the text for the model, which may be an error's, and True unless the tool failed."""
        try:
            return str(self._run[name](given)), True
        except (Exception, SystemExit) as error:  # noqa: BLE001  a tool may raise anything, and the model may try again
            return f"Error: {type(error).__name__}: {error}", False

    def _add(self, name: str, bound: object, run: Callable[[dict[str, Any]], object]) -> None:
        if name in self._run:
            raise InputError(f"There are two tools named {name!r}. Rename one of them.")
        self.bound.append(bound)
        self._run[name] = run
