"""The files of the page: what they may do, who gets them, and that they need nobody else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.browser.static_files import FOLDER, POLICY, RUNNING, static_files
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.server.readiness import Readiness
from tests.serving import ALICE, CHAT, HELLO, asked, serving

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FILES = sorted(FOLDER.iterdir())


def test_browsers_get_the_page_and_clients_of_ollama_what_they_look_for(at):
    status, page, headers = asked(at, "/", headers=BROWSER)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page == (FOLDER / "index.html").read_text()
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy"):
        assert name in headers
    assert asked(at, "/")[:2] == (200, RUNNING.decode())
    assert asked(at, "/", headers={"accept": "*/*"})[1] == RUNNING.decode()
    tag = {"if-none-match": headers["etag"]}
    assert asked(at, "/", headers=BROWSER | tag)[:2] == (304, "")
    assert asked(at, "/page/main.js", headers=tag)[0] == 200, "another file has another tag"


def test_all_that_the_page_names_is_there_and_nothing_of_another_host(at):
    page = (FOLDER / "index.html").read_text()
    named = {f"/{each}" for each in re.findall(r'(?:href|src)="(page/[^"]+)"', page)}
    modules = {f"/page/{file.name}" for file in FILES if file.suffix == ".js"}
    for file in FILES:
        text = file.read_text()
        named |= {f"/page/{each}" for each in re.findall(r'from "\./([^"]+)"', text)}
        hosts = {each for each in re.findall(r"https?://[\w.]*", text) if "w3.org" not in each} - {"https://"}
        assert hosts == set(), file.name
    expected = {"/page/whole.js"} | {f"/page/{file.name}" for file in FILES} - {"/page/index.html"}
    assert named | {"/page/main.js"} == expected, "no file too many or too few"
    whole = asked(at, "/page/whole.js")[1]
    assert not re.search(r"^(?:import|export)\b", whole, re.MULTILINE), "it needs no other file"
    for path in modules:
        assert whole.count(f"const {path.removeprefix('/page/').removesuffix('.js')}_js = ") == 1
    for path in named:
        assert asked(at, path)[0] == 200
    assert set(static_files()) == expected | {"/"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_policy_forbids_nothing_that_a_file_does(file: Path):
    """Chromium drives the page in ``test_page.py``; this holds where there is none."""
    text = file.read_text()
    assert "unsafe" not in POLICY
    for inline in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "style="):
        assert inline not in text
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=", text)


def test_the_files_need_no_key_and_all_that_they_ask_for_does():
    with serving(None, keys=ApiKeys({ALICE: "alice"})) as server:
        at = server.listening.shown
        assert asked(at, "/", headers=BROWSER)[0] == asked(at, "/page/main.js")[0] == 200
        for path in ("/", "/activity", "/v1/models", "/page/none.js"):
            assert asked(at, path)[0] == 401, path
        assert asked(at, "/activity", headers={"authorization": "Bearer no-0123456789abcdef"})[0] == 401


def test_without_the_page_there_is_none():
    with serving(None, page=False) as server:
        at = server.listening.shown
        assert asked(at, "/", headers=BROWSER)[:2] == (200, RUNNING.decode())
        assert asked(at, "/activity")[0] == asked(at, "/page/main.js")[0] == 404


def test_the_pages_own_requests_are_answered_and_no_other_sites(at, says):
    says("Hello<turn|>")
    host = at.removeprefix("http://")
    for origin, status in (
        (f"http://{host}", 200),
        ("http://localhost:1", 403),
        (f"https://{host}", 403),
        ("null", 403),
    ):
        assert asked(at, CHAT, HELLO, {"origin": origin})[0] == status, origin
    assert asked(at, CHAT, HELLO, {"origin": "http://evil.example", "host": "evil.example"})[0] == 403


async def test_below_a_path_addresses_are_of_the_page_itself():
    app = GemmaJaxApp(ServedModels(("scripted",)), readiness=Readiness(()))
    told: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        told.append(message)

    headers = [(b"host", b"localhost"), (b"accept", b"text/html")]
    for path, status in (("/a/b", 308), ("/a/b/", 200), ("/a/b/page/main.js", 200)):
        told.clear()
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "/a/b", "headers": headers}
        await app(scope, receive, send)
        assert told[0]["status"] == status, path
        if status == 308:
            assert dict(told[0]["headers"])[b"location"] == b"/a/b/"
