"""Chromium, driven by its DevTools protocol through two pipes: a tab, what went wrong in it, what it asked for."""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LONG, until

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """The browser's program; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser without a window, with a profile of its own."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    arguments = [
        chromium(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run",
        "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
        "--disable-default-apps", "--disable-sync", "--no-proxy-server", "--disable-dev-shm-usage", "--lang=en-US",
        "--font-render-hinting=none", "about:blank",
    ]  # fmt: skip
    # The protocol is spoken at 3 and 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *arguments]
    process = subprocess.Popen(
        shell, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    found = Browser(ours_in, ours_out)
    try:
        yield found
    finally:
        found.close()
        process.terminate()
        process.wait(LONG)


class Browser:
    """The protocol: commands with their answers, and events by their tab."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = os.fdopen(reads, "rb", buffering=0), os.fdopen(writes, "wb", buffering=0)
        self._number, self._answers = 0, dict[int, queue.Queue[Any]]()
        self.tabs: dict[str, Tab] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def ask(self, method: str, session: str | None = None, **given: object) -> Any:
        """The result of a command."""
        self._number += 1
        number, answer = self._number, queue.Queue[Any]()
        self._answers[number] = answer
        told = {"id": number, "method": method, "params": given} | ({"sessionId": session} if session else {})
        self._writes.write(json.dumps(told).encode() + b"\0")
        found = answer.get(timeout=LONG)
        assert "error" not in found, (method, found["error"])
        return found["result"]

    def tab(self, width: int = 1280, height: int = 800, *, dark: bool = False) -> Tab:
        """A tab with a store of its own, as of a first visit."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        found = self.tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            found.ask(f"{domain}.enable")
        found.show(width, height, dark=dark)
        return found

    def close(self) -> None:
        """End the browser."""
        self._writes.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self._thread.join(LONG)
        self._writes.close()
        self._reads.close()

    def _listen(self) -> None:
        rest = b""
        while data := self._reads.read(1 << 16):
            *whole, rest = (rest + data).split(b"\0")
            for each in map(json.loads, whole):
                if "method" in each:
                    if (tab := self.tabs.get(each.get("sessionId", ""))) is not None:
                        tab.happened(each["method"], each["params"])
                elif (answer := self._answers.pop(each["id"], None)) is not None:
                    answer.put(each)


class Tab:
    """One tab: what is in it, what a person does there, and what it complained of or asked for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.problems: list[str] = []
        self.asked_for: list[str] = []
        self.loads = 0

    def ask(self, method: str, **given: object) -> Any:
        """The result of a command in this tab."""
        return self._browser.ask(method, self._session, **given)

    def happened(self, method: str, told: dict[str, Any]) -> None:
        """Note an event."""
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Log.entryAdded" and told["entry"]["level"] in {"error", "warning"}:
            self.problems.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in {"error", "warning", "assert"}:
            self.problems.append(str(told["args"]))
        elif method == "Network.requestWillBeSent":
            self.asked_for.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Have a screen of this size, in these colors."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def visit(self, address: str) -> None:
        """Load a page, and wait until it is there."""
        before = self.loads
        self.ask("Page.navigate", url=address)
        until(lambda: self.loads > before)

    def reload(self) -> None:
        """Load the page again."""
        before = self.loads
        self.ask("Page.reload")
        until(lambda: self.loads > before)

    def run(self, script: str) -> Any:
        """The value of an expression."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """The value of an expression, as soon as it is true."""
        found: list[Any] = []
        until(lambda: found.append(self.run(script)) or found[-1])
        return found[-1]

    def text(self, selector: str) -> str:
        """The text of an element, as soon as it is there."""
        return str(self.wait(f"document.querySelector({json.dumps(selector)})?.innerText ?? false"))

    def count(self, selector: str) -> int:
        """The number of elements."""
        return int(self.run(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str, text: str = "") -> None:
        """Click in the middle of the last element with this text, with the mouse."""
        script = (
            f"(() => {{ const all = [...document.querySelectorAll({json.dumps(selector)})].filter((each) => "
            f"each.textContent.includes({json.dumps(text)}) && !each.disabled && each.checkVisibility()); "
            "const found = all.at(-1); if (!found) return false; found.scrollIntoView({block: 'nearest'}); "
            "const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        x, y = self.wait(script)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Type a text where the keyboard is."""
        self.ask("Input.insertText", text=text)

    def press(self, key: str, code: int, **how: object) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(key)
        for kind in ("keyDown", "keyUp"):
            given = {"key": key, "code": key, "windowsVirtualKeyCode": code, **how}
            self.ask(
                "Input.dispatchKeyEvent", type=kind, **given, **({"text": text} if text and kind == "keyDown" else {})
            )

    def shot(self) -> bytes:
        """The screen as a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
