"""Time the page of a server in a real browser: a first visit to its first token, and what it takes from the engine.

    python benchmarks/serving/browser_page.py                      # sprout-m
    python benchmarks/serving/browser_page.py --model build/real/gemma-3-270m-Q4_K_M.gguf --pairs 20

The server is warm, and in this process, as in ``gemma-jax serve``; the browser is Debian's Chromium, in processes of
its own. Each visit is a first one: nothing is in the browser's cache, and a script asks as soon as the page takes a
question. Steps are measured in pairs, in a random order: the same answer, with the page open and with an empty tab.
The page draws in the browser, so on a machine without a core to spare for that, a pair shows it too.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
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


def step(model: str, tokens: int) -> float:
    """Return the seconds of a decode step, by the engine's own clock: the same tokens each time."""
    before = engine().report()
    ChatGemmaJax(model=model, temperature=1.0, seed=1, max_tokens=tokens).invoke("Write a long story.")
    after = engine().report()
    seconds = (
        (after.host_s - before.host_s) + (after.dispatch_s - before.dispatch_s) + (after.device_s - before.device_s)
    )
    return seconds / (after.steps - before.steps)


def pairs(tab: Tab, address: str, model: str, count: int, tokens: int) -> list[tuple[float, float]]:
    """Return the seconds of a step with the page open and with an empty tab, in pairs."""
    chance, found = random.Random(0), []
    for _ in range(count):
        taken = {}
        for is_open in chance.sample((True, False), 2):
            tab.visit(address if is_open else "about:blank")
            if is_open:
                tab.wait("document.querySelector('#engine rect') !== null")
            taken[is_open] = step(model, tokens)
        found.append((taken[True], taken[False]))
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
            step(model, options.tokens)
            visit(chrome, address)
        visits = [visit(chrome, address) for _ in range(options.visits)]
        found = pairs(chrome.tab(), address, model, options.pairs, options.tokens)
    engine().close(30)
    asked, first = (median(each) for each in zip(*visits, strict=True))
    with_it, without = (median(each) for each in zip(*found, strict=True))
    ratios = sorted(one / other for one, other in found)
    print(f"{len(visits)} visits: a question is taken after {asked:.3f} s, the first token shown after {first:.3f} s")
    print(f"The slowest: {max(each[1] for each in visits):.3f} s")
    print(f"{len(found)} pairs of steps, with / without the page: {', '.join(f'{each:.3f}' for each in ratios)}")
    rows = [
        Row("first visit to first token", model, f"{first:.3f} s", "–", None, f"≤ {BAR_FIRST_S} s",
            verdict(first / BAR_FIRST_S - 1)),
        Row("a step with the page open", model, f"{1000 * with_it:.2f} ms", f"without: {1000 * without:.2f} ms",
            median(ratios), f"≤ {BAR_STEP} ×", verdict(median(ratios) / BAR_STEP - 1)),
    ]  # fmt: skip
    print(bars_table(rows))
    print(f"Others used {others.cores_used():.2f} cores meanwhile.")
    write_json(options.json, None, rows)
    return int(first > BAR_FIRST_S or median(ratios) > BAR_STEP)


if __name__ == "__main__":
    sys.exit(main())
