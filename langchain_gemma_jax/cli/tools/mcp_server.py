"""A Model Context Protocol server in a process of its own: JSON-RPC over its pipes, one message on each line."""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Self

from langchain_gemma_jax.errors import InputError

PROTOCOL = "2025-06-18"
START_SECONDS = 30.0  # for the server to start and list its tools
CALL_SECONDS = 120.0  # for one call of a tool
END_SECONDS = 2.0  # for a server to end by itself, and then after each signal
MOST_TOOLS = 1000
MOST_CHARACTERS = 4 << 20  # of a message: a longer one is not read whole, and so is ignored
_NO_SUCH_METHOD = -32601


class McpServer:
    """An MCP server, started by a command. ``with`` ends it.

    with McpServer("python weather_server.py") as server:
        print(server.tools)  # as LangChain's ``bind_tools`` takes them
        print(server.call("weather", {"city": "Oslo"}))
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=5)
        self._numbers, self._writing = 0, threading.Lock()
        try:
            words = shlex.split(command)
            self._process = subprocess.Popen(  # noqa: S603  the user's own command
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                start_new_session=True,  # so that Ctrl-C stops the answer, and not the server
            )
        except (OSError, ValueError, IndexError) as error:
            raise InputError(f"--mcp: {command!r} could not be started: {error}") from error
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self._complaining = threading.Thread(target=self._read_complaints, daemon=True)
        self._complaining.start()
        try:
            self.tools = self._begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Have the server run a tool, and return the text of the result.

        Raises:
            InputError: the tool failed, or the server did not answer in time or has ended.
        """
        found = self._ask("tools/call", {"name": name, "arguments": arguments}, CALL_SECONDS)
        content = found.get("content")
        parts = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
        text = "\n".join(
            str(each.get("text", "")) if each.get("type") == "text" else f"({each.get('type')})" for each in parts
        )
        if not text and "structuredContent" in found:
            text = json.dumps(found["structuredContent"], ensure_ascii=False)
        if found.get("isError"):
            raise InputError(text or f"the tool {name} failed")
        return text

    def close(self) -> None:
        """End the server: close its input; if that is not enough, send SIGTERM, and then SIGKILL."""
        with suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        for end in (None, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                if end is not None:
                    os.killpg(self._process.pid, end)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
                break
        for thread, pipe in ((self._reading, self._process.stdout), (self._complaining, self._process.stderr)):
            thread.join(END_SECONDS)
            if pipe is not None and not thread.is_alive():  # else a child of the server's still has the other end
                pipe.close()

    def _begin(self) -> list[dict[str, Any]]:
        until = time.monotonic() + START_SECONDS
        about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "gemma-jax", "version": "1"}}
        self._ask("initialize", about, START_SECONDS)
        self._send({"method": "notifications/initialized"})
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while len(found) < MOST_TOOLS:
            page = self._ask("tools/list", cursor, max(0.1, until - time.monotonic()))
            listed = page.get("tools")
            found += [_as_function(each) for each in listed if _is_a_tool(each)] if isinstance(listed, list) else []
            if not isinstance(page.get("nextCursor"), str):
                break
            cursor = {"cursor": page["nextCursor"]}
        return found

    def _ask(self, method: str, params: dict[str, Any], patience: float) -> dict[str, Any]:
        self._numbers += 1
        number, until = self._numbers, time.monotonic() + patience
        self._send({"id": number, "method": method, "params": params})
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self._send({"method": "notifications/cancelled", "params": {"requestId": number}})
                raise self._error(f"said nothing to {method} within {patience:g} s") from None
            if answer is None:
                self._answers.put(None)  # for the next call
                self._complaining.join(1.0)  # its last lines may give the reason
                raise self._error(f"ended before it answered {method}")
            if answer.get("id") != number:
                continue  # a late answer to a call that was given up
            if (error := answer.get("error")) is not None:
                reason = error.get("message") if isinstance(error, dict) else error
                raise self._error(f"refused {method}: {reason}")
            result = answer.get("result")
            return result if isinstance(result, dict) else {}

    def _error(self, what: str) -> InputError:
        complaints = f" It wrote: {' / '.join(self._complaints)}" if self._complaints else ""
        return InputError(f"--mcp: the server {self.command!r} {what}.{complaints}")

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError, ValueError), self._writing:  # if it has ended, the missing answer shows that
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        """Read the server's messages. Runs in a thread of its own."""
        with suppress(OSError, ValueError):
            while self._process.stdout is not None and (line := self._process.stdout.readline(MOST_CHARACTERS)):
                with suppress(ValueError, RecursionError):
                    message = json.loads(line)
                    if isinstance(message, dict) and isinstance(message.get("method"), str):
                        self._answer(message)
                    elif isinstance(message, dict):
                        self._answers.put(message)
        self._answers.put(None)

    def _answer(self, message: dict[str, Any]) -> None:
        """Answer a request of the server. Notifications get no answer."""
        if "id" not in message:
            return
        unknown = {"error": {"code": _NO_SUCH_METHOD, "message": "this client has no such method"}}
        self._send({"id": message["id"], **({"result": {}} if message["method"] == "ping" else unknown)})

    def _read_complaints(self) -> None:
        with suppress(OSError, ValueError):
            while self._process.stderr is not None and (line := self._process.stderr.readline(1000)):
                self._complaints.append(line.strip())


def _is_a_tool(listed: object) -> bool:
    return isinstance(listed, dict) and isinstance(listed.get("name"), str)


def _as_function(listed: dict[str, Any]) -> dict[str, Any]:
    parameters = listed.get("inputSchema")
    description = listed.get("description")
    function = {
        "name": listed["name"],
        "description": description if isinstance(description, str) else "",
        "parameters": parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}
