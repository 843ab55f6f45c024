"""The page, driven by a real Chromium: what a person does there, with a real model behind it where that matters.

``SCREENSHOTS=folder`` has the two pictures of docs/ written there.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from tests.chat.scripted import ScriptedEngine
from tests.chat.sensing import SeenPictures
from tests.own_engine import own_engine
from tests.server.browser.chromium import Browser, Tab, browser
from tests.serving import ALICE, serving
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LAST = "#log article:last-of-type"
DONE = "document.querySelector('#stop').hidden"
SEES = "google/gemma-3-4b-it"  # as published
WEATHER = '[{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]'
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR42mPgL8vDgxhGpbEhAFhVXu3KE/3UAAAAAElFTkSuQmCC"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def tab(chrome) -> Iterator[Tab]:
    """A tab in which nothing may go wrong, and which may ask nobody but the server."""
    found = chrome.tab()
    yield found
    assert found.problems == []
    elsewhere = [
        url for url in found.asked_for if not url.startswith(("http://127.0.0.1:", "about:", "data:", "blob:"))
    ]
    assert elsewhere == []
    found.ask("Page.close")  # which would go on looking at the engine


def ahead(tab: Tab, script: str) -> None:
    """Have a script run before those of each page that is loaded from now on."""
    tab.ask("Page.addScriptToEvaluateOnNewDocument", source=script)


@pytest.fixture(scope="module")
def at() -> Iterator[str]:
    """A server of real models."""
    with own_engine(), serving(None, models=("sprout-m", "sprout-s"), others=False) as server:
        yield f"{server.listening.shown}/"


@contextmanager
def visited(tab: Tab, **how: Any) -> Iterator[None]:
    """The page of a server. It is left before that ends: it looks at the engine as long as it is there."""
    with serving(None, **how) as server:
        tab.visit(f"{server.listening.shown}/")
        yield
        tab.visit("about:blank")


@pytest.fixture
def scripted(monkeypatch, tab) -> Iterator[tuple[Tab, ScriptedEngine]]:
    """The page before an engine that says what it is told to."""
    engine = ScriptedEngine([])
    monkeypatch.setattr(process, "engine", lambda: engine)
    with visited(tab):
        tab.wait("!document.querySelector('#model').disabled")
        yield tab, engine


def call(name: str, argument: str, value: str) -> str:
    return f'<|tool_call>call:{name}{{{argument}:<|"|>{value}<|"|>}}<tool_call|><|tool_response>'


def ask(tab: Tab, text: str) -> None:
    """Ask, and wait for the end of what comes of it."""
    before = tab.count("#log .answer")
    tab.click("#question")
    tab.write(text)
    tab.press("Enter", 13)
    tab.wait(f"document.querySelectorAll('#log .answer').length > {before}")
    tab.wait(DONE)


def begin(tab: Tab, text: str) -> None:
    """Ask, and wait for the beginning of the answer."""
    tab.click("#question")
    tab.write(text)
    tab.press("Enter", 13)
    tab.wait("document.querySelector('#log .answer.writing') !== null")


def known_of(tab: Tab) -> tuple[int, ...]:
    """How many tokens of the last prompt were known, and how many it had."""
    text = tab.run("[...document.querySelectorAll('.cost .known')].at(-1).innerText")
    return tuple(int(each.replace(",", "")) for each in text.split(" tokens")[0].split(" of "))


def test_a_first_visit_and_an_answer_that_is_streamed(tab, at):
    tab.visit(at)
    assert "What do you want to know?" in tab.text(".welcome")
    assert tab.run("document.activeElement.id") == "question"
    ask(tab, "Hello!")
    assert tab.text(f"{LAST} .text").strip()
    assert " tokens known" in tab.text(".cost")
    assert "sprout-m" in tab.text(".cost")
    tab.wait("document.querySelector('#engine .requests li.over') !== null")
    tab.wait("document.querySelector('#engine rect.kept') !== null")
    assert "sprout-m" in tab.text("#engine .models")
    ask(tab, "And who are you?")
    known, of = known_of(tab)
    assert 0 < known < of, "the second turn goes on from the first"
    tab.reload()
    tab.wait("document.querySelectorAll('#log .answer').length === 2")
    assert "Hello!" in tab.text("#log .question")


def test_a_tool_that_the_page_carries_out_and_one_of_a_persons_own(scripted):
    tab, engine = scripted
    engine.answers += [
        f"<|channel>thought\nI need to calculate.<channel|>{call('calculate', 'expression', '2*(3+4)')}",
        "It is **14**.<turn|>",
        call("weather", "city", "Oslo"),
        "It *rains*.<turn|>",
    ]
    tab.click("#open-settings")
    tab.click("dialog [name='tool-calculate']")
    tab.click("dialog [name='ownTools']")
    tab.write(WEATHER)
    tab.click("dialog button", "Done")
    ask(tab, "What is 2 * (3 + 4)?")
    tab.wait("document.querySelector('#log .answer:last-of-type strong')?.innerText === '14'")
    assert '"expression": "2*(3+4)"' in tab.text(".card.call pre")
    assert tab.text(".card.result pre") == "14"
    assert tab.run("document.querySelector('.thoughts').open") is False
    ask(tab, "And the weather?")
    tab.click("form.card textarea")
    tab.write("rain")
    tab.click("form.card button", "Give this result")
    tab.wait("document.querySelector('#log .answer:last-of-type em')?.innerText === 'rains'")
    assert len(engine.submitted) == 4


def test_a_question_that_comes_before_a_result(scripted):
    tab, engine = scripted
    engine.answers += [call("weather", "city", "Oslo"), "Never mind.<turn|>"]
    tab.run(f"localStorage.setItem('gemma-jax settings /', {json.dumps(json.dumps({'ownTools': WEATHER}))})")
    tab.reload()
    tab.wait("!document.querySelector('#model').disabled")
    ask(tab, "Is it raining?")
    assert tab.text(".card.result .tag") == "waits for you"
    ask(tab, "Forget it.")
    assert tab.text(".card.result .tag") == "failed"
    assert tab.text(f"{LAST} .text") == "Never mind."
    assert tab.text(".card.result pre") == "No result was given."
    assert tab.count("form.card") == 0


def test_an_answer_that_is_left_or_stopped_before_its_first_word(tab, monkeypatch):
    silent, speaks = ScriptedEngine([], silent=True), ScriptedEngine(["Hello<turn|>"])
    monkeypatch.setattr(process, "engine", lambda: silent)
    with visited(tab):
        tab.wait("!document.querySelector('#model').disabled")
        begin(tab, "Hi")
        until(lambda: len(silent.submitted) == 1)
        assert tab.count(".waiting") == 1
        assert tab.run("document.getAnimations().length") == 0, "an animation would have each frame drawn"
        tab.click("#open-settings")
        tab.press("Escape", 27)
        tab.wait("!document.querySelector('#settings').open")
        assert tab.run(DONE) is False, "the key closed the settings alone"
        tab.reload()
        tab.wait("document.querySelector('#log .answer.stopped') !== null")
        tab.wait("!document.querySelector('#model').disabled")
        begin(tab, "Are you there?")
        until(lambda: len(silent.submitted) == 2)  # else the next engine may be asked it
        tab.press("Escape", 27)
        tab.wait(DONE)
        assert tab.count("#log .answer.stopped") == 2
        monkeypatch.setattr(process, "engine", lambda: speaks)
        ask(tab, "Now?")
        assert tab.text(f"{LAST} .text") == "Hello"


def test_what_a_reader_opened_or_typed_stays(scripted):
    tab, engine = scripted
    thought = "<|channel>thought\nHm.<channel|>"
    engine.answers += [f"{thought}One.<turn|>", "Two.<turn|>", "Three.<turn|>"]
    ask(tab, "First?")
    tab.click(".thoughts summary")
    tab.click("#log .question .actions button", "Edit")
    tab.write(" Or not?")
    ask(tab, "Second?")
    assert tab.run("document.querySelector('.thoughts').open")
    assert tab.run("document.querySelector('form.edit textarea').value") == "First? Or not?"
    tab.click("form.edit button", "Leave it")
    assert tab.run("document.activeElement.innerText") == "Edit"
    tab.click(f"{LAST} .actions button", "Copy")
    tab.wait(f"document.querySelector({json.dumps(LAST)}).innerText.includes('Copied')")
    tab.click("#new-chat")
    tab.wait("document.querySelector('.welcome') !== null")
    tab.click("#notice button", "Bring the last one back")
    tab.wait("document.querySelectorAll('#log .answer').length === 2")
    tab.click("#new-chat")
    ask(tab, "Third?")
    assert tab.count("#log .answer") == 1
    assert tab.run("document.querySelector('#notice').hidden")


MARKDOWN = {
    "1. a\n\n   ```py\n   if x:\n       y\n   ```\n\n2. b\n   - c": (
        "<ol><li>a<figure>if x:\n    y</figure></li><li>b<ul><li>c</li></ul></li></ol>"
    ),
    "- a\n- b\n\n1. c": "<ul><li>a</li><li>b</li></ul><ol><li>c</li></ol>",
    "**a** _b_ `c` *d*": "<p><strong>a</strong> _b_ <code>c</code> <em>d</em></p>",
    "|a|b|\n|-|-|\n|1|2|": "<div><table><thead><tr><th>a</th><th>b</th></tr></thead>"
    "<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
}
OUTLINE = """(text) => import('/page/markdown.js').then(({ shown }) => {
    const told = (node) => node.nodeType === 3 ? node.data : node.tagName === 'FIGURE'
        ? `<figure>${node.querySelector('code').innerText}</figure>`
        : `<${node.tagName.toLowerCase()}>${[...node.childNodes].map(told).join('')}</${node.tagName.toLowerCase()}>`;
    return [...shown(text).childNodes].map(told).join('');
})"""


def test_markdown_of_models_and_of_their_worst(tab, at):
    tab.visit(at)
    for text, shown in MARKDOWN.items():
        assert tab.run(f"({OUTLINE})({json.dumps(text)})") == shown
    hostile = [mark * 20_000 for mark in (">", "> ", "*a ", "**a ", "`a ", "``a` ", "[a", "[a](", "|-", "- " * 3, "#")]
    hostile += ["\n".join(" " * depth + "- a" for depth in range(500)), "\n".join(">" * each for each in range(500))]
    for text in hostile:
        assert tab.run(f"({OUTLINE})({json.dumps(text)})"), text[:20]


def test_the_keyboard_stays_where_it_was_when_something_is_drawn_again(tab, at):
    tab.visit(at)
    now = tab.run("""import('/page/dom.js').then(({ el, keepFocus }) => {
        const part = (names) => names.map((name) => el('button', { data: { place: name } }, name));
        const inside = el('div', { tabindex: '0' }, part(['a', 'b']));
        document.body.append(inside);
        inside.lastChild.focus();
        const found = [['b', 'a'], ['a']].map((names) => {
            keepFocus(inside, () => inside.replaceChildren(...part(names)));
            return document.activeElement === inside ? 'all of it' : document.activeElement.innerText;
        });
        inside.remove();
        return found;
    })""")
    assert now == ["b", "all of it"]


def test_words_of_a_model_stay_words(scripted):
    tab, engine = scripted
    engine.answers += [
        '<img src="https://evil.example/x.png"> <script>alert(1)</script> [go](javascript:alert(1))<turn|>'
    ]
    ask(tab, "Hi")
    assert '<img src="https://evil.example/x.png"> <script>' in tab.text(f"{LAST} .text")
    assert tab.count("#log img, #log script, #log a") == 0


def test_a_picture_that_is_dropped(tab, monkeypatch):
    engine = ScriptedEngine(["A square.<turn|>"] * 2, support=MediaSupport(SeenPictures()))
    monkeypatch.setattr(process, "engine", lambda: engine)
    drop = f"""(async () => {{
        const bytes = Uint8Array.from(atob("{PNG}"), (each) => each.charCodeAt(0));
        const dropped = new DataTransfer();
        dropped.items.add(new File([bytes], "square.png", {{ type: "image/png" }}));
        dispatchEvent(new DragEvent("drop", {{ dataTransfer: dropped, cancelable: true }}));
    }})()"""
    with visited(tab, models=("sprout-m", SEES)):
        tab.wait("!document.querySelector('#model').disabled")
        tab.run(drop)
        assert "sees no pictures" in tab.text("#notice")
        tab.run(f"document.querySelector('#model').value = {json.dumps(SEES)}")
        tab.run("document.querySelector('#model').dispatchEvent(new Event('change'))")
        tab.run(drop)
        tab.wait("document.querySelector('#pictures img')?.naturalWidth === 10")
        ask(tab, "What is that?")
        assert tab.run("document.querySelector('.question img').naturalWidth") == 10
        assert tab.text(f"{LAST} .text") == "A square."
        assert engine.submitted[0]["spans"].media
        tab.run("document.querySelector('#question').value = 'And that?'")
        tab.run(f"{drop.removesuffix('()')}().then(() => document.querySelector('#composer').requestSubmit())")
        tab.wait("document.querySelectorAll('.question img').length === 2")
        tab.wait(DONE)
        tab.run(drop.replace("square.png", "notes.txt").replace(PNG, "AAAA"))
        tab.wait("document.querySelector('#notice').innerText.includes('notes.txt is no picture')")


def test_stop_edit_and_branch(tab, at):
    tab.visit(at)
    ask(tab, "Hello!")
    tab.click("#question")
    tab.write("Write a very long story about a ring buffer.")
    tab.press("Enter", 13)
    tab.wait("document.querySelectorAll('#log .answer').length === 2")
    tab.click("#stop")
    tab.wait("document.querySelector('#stop').hidden")
    tab.wait("document.querySelector('#log .answer.stopped, #log .answer.done:last-of-type') !== null")
    tab.press("ArrowUp", 38)  # in the empty field: the last question, in other words
    tab.wait("document.activeElement.closest('form.edit') !== null")
    tab.run("document.activeElement.select()")
    tab.write("What can you do?")
    tab.press("Enter", 13)
    tab.wait("document.querySelectorAll('#log .question').length === 2")
    tab.wait(DONE)
    assert tab.text("#log .question:nth-of-type(3) .words") == "What can you do?"
    assert "2/2" in tab.text("#log .branches")
    tab.click(".branches button", "‹")
    assert "ring buffer" in tab.text("#log .question:nth-of-type(3) .words")
    tab.click(".branches button", "›")
    tab.click("#log .answer:last-of-type .actions button", "Again")
    tab.wait("document.querySelectorAll('#log .branches').length === 2")
    tab.wait(DONE)
    known, of = (
        tab.run("[...document.querySelectorAll('.cost .known')].at(-1).innerText").split(" tokens")[0].split(" of ")
    )
    assert int(known) == int(of) - 1, "but for the last token, which is always read"
    tab.reload()
    tab.wait("document.querySelectorAll('#log .branches').length === 2")


def test_a_server_with_keys(tab, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"])
    monkeypatch.setattr(process, "engine", lambda: engine)
    with visited(tab, keys=ApiKeys({ALICE: "alice"})):
        tab.wait("document.querySelector('#key').open")
        tab.write("schlüssel")  # which no header of HTTP can have
        tab.press("Enter", 13)
        tab.wait("document.querySelector('#key-problem').innerText.includes('Expected letters, digits and signs')")
        tab.run("document.activeElement.select()")
        tab.write("wrong-0123456789abcdef")
        tab.press("Enter", 13)
        tab.wait("document.querySelector('#key-problem').innerText.includes('does not know the API key')")
        tab.run("document.activeElement.select()")
        tab.write(ALICE)
        tab.press("Enter", 13)
        tab.wait("!document.querySelector('#key').open && !document.querySelector('#model').disabled")
        assert tab.run("Object.values(localStorage).join().includes('alice-')") is False
        ask(tab, "Hi")
        assert tab.text(f"{LAST} .text") == "Hello"
        assert engine.submitted[0]["scope"] == "key:alice/"
    tab.problems = [each for each in tab.problems if "401" not in each]  # the browser notes each refusal by itself


def test_errors_are_told_where_they_happened(scripted):
    tab, engine = scripted
    tab.run("(() => { const s = document.querySelector('#question'); s.value = 'x '.repeat(9000); })()")
    tab.click("#question")
    tab.press("Enter", 13)
    tab.wait(DONE)
    assert "tokens" in tab.text("#log .problem")
    engine.answers += ["Hello<turn|>"]
    tab.problems = [each for each in tab.problems if "400" not in each]  # the browser's own note


GROWN = """import('/page/markdown.js').then(({ GrowingText, shown }) => {
    const text = %s;
    const growing = new GrowingText();
    for (let end = 1; end <= text.length; end++) {
        const found = growing.show(text.slice(0, end));
        const whole = document.createElement('div');
        whole.append(shown(text.slice(0, end)));
        if (found.innerHTML !== whole.innerHTML) return text.slice(0, end);
    }
    return growing.show('# Another').textContent === 'Another' && 'the same';
})"""


def test_a_text_that_grows_is_what_it_would_be_at_once(tab, at):
    tab.visit(at)
    texts = [
        *MARKDOWN,
        "\n\n".join(MARKDOWN),
        "\n".join(MARKDOWN),
        "a\n\n```py\nb\n\n\nc\n```\nd\n- e\n\n\n\n  f\n\n- g\n***\n",
    ]
    for text in texts:
        assert tab.run(GROWN % json.dumps(text)) == "the same"


def test_each_block_of_a_text_that_grows_is_read_once(tab, at):
    tab.visit(at)
    made = tab.run("""import('/page/markdown.js').then(({ GrowingText }) => {
        const [growing, text, make] = [new GrowingText(), 'word\\n\\n'.repeat(100), document.createElement];
        let made = 0;
        document.createElement = (...told) => { made++; return make.apply(document, told); };
        for (let end = 1; end <= text.length; end++) growing.show(text.slice(0, end));
        document.createElement = make;
        return made;
    })""")
    assert made <= 3 * 600, "of its hundred paragraphs, at most the last three are made again with each letter"


def test_code_that_grows_is_copied_whole(tab, at):
    tab.visit(at)
    copied = tab.run("""import('/page/markdown.js').then(async ({ GrowingText }) => {
        const growing = new GrowingText();
        document.body.append(growing.show('```py\\nfirst'));
        const pressed = growing.element.querySelector('button');
        growing.show('```py\\nfirst\\nsecond\\n```\\n');
        const copied = new Promise((done) => { navigator.clipboard.writeText = done; });
        pressed.click();
        return pressed.isConnected && copied;
    })""")
    assert copied == "first\nsecond"


DRAWN = """Promise.all(['messages', 'dom'].map((each) => import(`/page/${each}.js`))).then(async ([{ Messages }]) => {
    performance.now = () => 0; // so that the time that this takes does not count
    const log = document.querySelector('#log');
    const soon = () => new Promise((done) => setTimeout(done, 150)); // longer than the page waits for its next draw
    const seen = (hidden) => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    };
    const node = { id: 1, parent: 0, role: 'ai', state: 'writing', text: 'A paragraph.\\n\\n', thoughts: '',
        calls: [], ruins: [] };
    const conversation = { path: () => [node], branchesAt: () => ({ count: 1, number: 1 }) };
    const messages = new Messages({ busy: true, conversation }, () => {});
    messages.drawAll();
    const told = [];
    const records = new MutationObserver((found) => told.push(...found));
    const writes = () => [...told.splice(0), ...records.takeRecords()].map(({ type }) => type);
    const write = (words) => { for (const word of words) { node.text += `${word} `; messages.draw(node); } };
    write(['It', 'begins', 'with']);
    await soon();
    records.observe(log, { subtree: true, childList: true, characterData: true, attributes: true });
    const thousand = Array.from({ length: 1000 }, (_, n) => n);
    write(thousand);
    const atFirst = writes();
    await soon();
    const later = writes();
    seen(true);
    write(thousand);
    await soon();
    const hidden = writes();
    seen(false);
    await soon();
    const whole = log.querySelector('.text').textContent.endsWith(' 998 999 ');
    return { atFirst, later, hidden, seen: writes(), whole };
})"""


def test_a_thousand_tokens_are_drawn_with_one_change_and_none_unseen(tab, at):
    tab.visit(at)
    tab.click("#toggle-engine")
    assert tab.run(DRAWN) == {
        "atFirst": [],  # the last draw is not a tenth of a second ago
        "later": ["characterData"],  # all of them, added to the text that is there
        "hidden": [],
        "seen": ["characterData"],
        "whole": True,
    }


def test_a_page_asks_once_for_what_it_needs_and_looks_at_the_engine_while_it_is_seen(scripted):
    tab, engine = scripted
    engine.answers += ["Hello<turn|>"]
    tab.show(390, 844)  # where the engine is not shown at first
    at = tab.run("location.href")
    tab.asked_for.clear()
    tab.visit(at)
    tab.wait("!document.querySelector('#model').disabled")
    ask(tab, "Hi")
    asked_for = [url.removeprefix(at) for url in tab.asked_for]
    assert sorted(url for url in asked_for if not url.endswith(".svg")) == [
        "", "activity", "gemma-jax/2/stream", "page/style.css", "page/whole.js"
    ]  # fmt: skip
    ahead(tab, "const after = setTimeout; window.setTimeout = (act, wait) => after(act, wait === 2000 ? 0 : wait);")
    tab.visit(at)
    looks = "performance.getEntriesByName(new URL('activity', location).href).length"
    tab.click("#toggle-engine")
    tab.wait(f"{looks} > 9")
    for stop in (
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true })",
        "document.querySelector('#toggle-engine').click()",
    ):
        tab.run(stop)
        before = tab.run(looks)
        after = tab.run(f"(async () => {{ for (let n = 0; n < 100; n++) await fetch('health'); return {looks}; }})()")
        assert after <= before + 1, "but for the look that had begun"
        tab.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        if "hidden" in stop:
            tab.wait(f"{looks} > {after + 9}")


def test_copying_where_the_browser_has_no_clipboard(tab, monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"])
    monkeypatch.setattr(process, "engine", lambda: engine)
    # As on plain http of another host.
    ahead(tab, "Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    with visited(tab):
        tab.wait("!document.querySelector('#model').disabled")
        ask(tab, "Hi")
        tab.click(f"{LAST} .actions button", "Copy")
        tab.wait("document.activeElement.innerText === 'Copied'")
        assert tab.count("body > textarea") == 0
        tab.wait("document.activeElement.innerText === 'Copy'")
        tab.click("#question")
        tab.press("v", 86, commands=["paste"])
        assert tab.run("document.querySelector('#question').value") == "Hello"
        tab.run("document.execCommand = () => false")
        tab.click(f"{LAST} .actions button", "Copy")
        tab.wait("document.activeElement.innerText === 'The browser does not let this page copy'")


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core, as npm has it."""
    folder = ROOT / "build" / "axe"
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        done = subprocess.run([ROOT / "scripts" / "axe", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"axe-core is not there: {done.stderr.strip()[-300:]}")
    return file.read_text()


LOOKS = {
    "light": (1280, 800, False),
    "dark": (1280, 800, True),
    "narrow": (390, 844, False),
    "dark and narrow": (390, 844, True),
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_look_of_it_is_accessible(tab, at, axe, look):
    width, height, dark = LOOKS[look]
    tab.show(width, height, dark=dark)
    tab.visit(at)
    tab.wait("!document.querySelector('#model').disabled")
    for state in ("empty", "settings", "talked"):
        if state == "settings":
            tab.click("#open-settings")
        if state == "talked":
            tab.click("dialog button", "Cancel")
            ask(tab, "Write a list of three fruits, and `code`.")
            if width < 500:
                assert not tab.run("getComputedStyle(document.querySelector('#engine')).display !== 'none'")
                tab.click("#toggle-engine")
            tab.wait("document.querySelector('#engine rect') !== null")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
        tab.ask("Runtime.evaluate", expression=axe)
        found = tab.run(
            "axe.run().then(({violations}) => violations.map(({id, impact, nodes}) => [id, impact, nodes[0].html]))"
        )
        assert [each for each in found if each[1] in {"serious", "critical"}] == [], (look, state)
        ground = tab.run("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(250, 249, 246)") is not dark


def test_the_pictures_of_the_page(tab, at):
    """Not a test of its own, but what docs/ shows: written where SCREENSHOTS says."""
    folder = os.environ.get("SCREENSHOTS")
    if not folder:
        pytest.skip("SCREENSHOTS=docs/images has them written")
    tab.show(1280, 860)
    tab.visit(at)
    tab.click("#open-settings")
    tab.click("dialog [name='tool-calculate']")
    tab.click("dialog button", "Done")
    for question in ("Hello! What can you do?", "What is 12 * (3 + 4)?", "Thank you!"):
        ask(tab, question)
        tab.wait("!document.querySelector('#send').hidden")
    tab.wait("document.querySelectorAll('#engine .requests li.over').length >= 3")
    Path(folder, "page-light.png").write_bytes(tab.shot())
    tab.show(1280, 860, dark=True)
    Path(folder, "page-dark.png").write_bytes(tab.shot())
