"""Time the page of a server in a real browser: a first visit to its first token, and what it takes from the engine.

    python benchmarks/serving/browser_page.py                      # sprout-m
    python benchmarks/serving/browser_page.py --model build/real/gemma-3-270m-Q4_K_M.gguf --pairs 20

The server is warm, and in this process, as in ``gemma-jax serve``; the browser is Debian's Chromium, in processes of
its own. Each visit is a first one: nothing is in the browser's cache, and a script asks as soon as the page takes a
question. Steps are measured three ways, in a random order: the same answer, asked for by a program with an empty tab,
by a program with the page open, and by the page. The page draws in the browser, so on a machine without a core to spare
for that, it takes longer.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import json_option, positive, write_json
from benchmarks.running.machine import Others
from benchmarks.running.report import bars_table
from langchain_gemma_jax import ChatGemmaJax, engine
from tests.server.browser.chromium import Browser, Tab, browser
from tests.serving import serving

BAR_FIRST_S, BAR_STEP = 0.3, 1.02  # a ratio of one and two hundredths is what pairs on a quiet machine can tell apart
QUESTION, HOT = "Write a long story.", 5.0  # a temperature at which answers hardly end before their most tokens
SETTLED_S = 1.0  # after which a browser has done what it does for each page that it opens
ASKS = """
addEventListener('DOMContentLoaded', () => {
    const look = new MutationObserver(() => {
        const field = document.querySelector('#question');
        if (!window.asked && document.activeElement === field && !document.querySelector('#model').disabled) {
            window.asked = performance.now();
            field.value = 'Hello!';
            document.querySelector('#composer').requestSubmit();
        }
        const written = document.querySelector('.answer .text')?.textContent;
        if (!window.answered && written) window.answered = performance.now();
    });
    look.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
});
"""


def visit(chrome: Browser, address: str) -> tuple[float, float]:
    """Return the seconds of a first visit until the page takes a question, and until the first token is shown."""
    tab = chrome.tab()
    tab.ask("Page.addScriptToEvaluateOnNewDocument", source=ASKS)
    tab.visit(address)
    tab.wait("window.answered > 0")
    found = tab.run("[window.asked / 1000, window.answered / 1000]")
    tab.ask("Page.close")
    return found[0], found[1]


def step(asks: Callable[[], object]) -> float:
    """Return the seconds of a step of what is asked, by the engine's own clock."""
    before = engine().report()
    asks()
    after = engine().report()
    seconds = (
        (after.host_s - before.host_s) + (after.dispatch_s - before.dispatch_s) + (after.device_s - before.device_s)
    )
    return seconds / (after.steps - before.steps)


def by_program(model: str, tokens: int) -> None:
    """Ask as a program does that has the engine in its process."""
    ChatGemmaJax(model=model, temperature=HOT, seed=1, max_tokens=tokens).invoke(QUESTION)


def by_page(tab: Tab) -> None:
    """Ask in the page, and wait without looking until its answer is whole."""
    tab.click("#question")
    tab.write(QUESTION)
    tab.press("Enter", 13)
    tab.run(
        "new Promise((done) => { const stop = document.querySelector('#stop'); let began = !stop.hidden;"
        "new MutationObserver(() => { began ||= !stop.hidden; if (began && stop.hidden) done(); })"
        ".observe(stop, { attributes: true }); })"
    )


def pairs(tab: Tab, address: str, model: str, count: int, tokens: int) -> list[tuple[float, float, float]]:
    """Return the seconds of a step with an empty tab, with the page open, and of the page's own answer."""
    told = json.dumps({"temperature": str(HOT), "seed": "1", "max_tokens": str(tokens)})
    tab.ask(
        "Page.addScriptToEvaluateOnNewDocument",
        source=f"try {{ localStorage.setItem('gemma-jax settings /', {json.dumps(told)}); sessionStorage.clear(); }}"
        " catch { /* an empty tab has no store */ }",
    )
    chance, found = random.Random(0), []
    for _ in range(count):
        taken = {}
        for way in chance.sample(("empty", "open", "asks"), 3):
            tab.visit("about:blank" if way == "empty" else address)
            if way != "empty":
                tab.wait("document.querySelector('#engine rect') !== null")
            time.sleep(SETTLED_S)
            taken[way] = step(partial(by_page, tab) if way == "asks" else partial(by_program, model, tokens))
        found.append((taken["empty"], taken["open"], taken["asks"]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="sprout-m")
    parser.add_argument("--visits", type=positive, default=10)
    parser.add_argument("--pairs", type=positive, default=10)
    parser.add_argument("--tokens", type=positive, default=400, help="of the answer whose steps are measured")
    json_option(parser)
    options = parser.parse_args(arguments)
    model, others = options.model, Others()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(None, models=(model,), others=False) as server,
        browser(Path(folder)) as chrome,
    ):
        address = f"{server.listening.shown}/"
        for _ in range(2):  # programs are compiled, and Chromium has started its processes
            by_program(model, options.tokens)
            visit(chrome, address)
        visits = [visit(chrome, address) for _ in range(options.visits)]
        found = pairs(chrome.tab(), address, model, options.pairs, options.tokens)
    engine().close(30)
    asked, first = (median(each) for each in zip(*visits, strict=True))
    without, with_it, asking = (median(each) for each in zip(*found, strict=True))
    open_ratios, asks_ratios = (sorted(each[n] / each[0] for each in found) for n in (1, 2))
    print(f"{len(visits)} visits: a question is taken after {asked:.3f} s, the first token shown after {first:.3f} s")
    print(f"The slowest: {max(each[1] for each in visits):.3f} s; the fastest: {min(each[1] for each in visits):.3f} s")
    print(f"{len(found)} steps with / without the page: {', '.join(f'{each:.3f}' for each in open_ratios)}")
    print(f"The same, of the page's own answer: {', '.join(f'{each:.3f}' for each in asks_ratios)}")
    beside = f"without: {1000 * without:.2f} ms"
    rows = [
        Row("first visit to first token", model, f"{first:.3f} s", "–", None, f"≤ {BAR_FIRST_S} s",
            verdict(first / BAR_FIRST_S - 1)),
        Row("a step with the page open", model, f"{1000 * with_it:.2f} ms", beside,
            median(open_ratios), f"≤ {BAR_STEP} ×", verdict(median(open_ratios) / BAR_STEP - 1)),
        Row("a step of the page's own answer", model, f"{1000 * asking:.2f} ms", beside,
            median(asks_ratios), "–", ""),
    ]  # fmt: skip
    print(bars_table(rows))
    print(f"Others used {others.cores_used():.2f} cores meanwhile.")
    write_json(options.json, None, rows)
    return int(first > BAR_FIRST_S or median(open_ratios) > BAR_STEP)


if __name__ == "__main__":
    sys.exit(main())
