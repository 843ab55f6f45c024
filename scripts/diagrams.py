"""Draws the diagrams of the documentation, from the code that they are about: ``python scripts/diagrams.py``.

Each is a function that returns an SVG. ``tests/test_diagrams.py`` compares them with the files in ``docs/images``, so a
change of the code that a diagram shows is seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from types import MappingProxyType

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.catalog import published

FOLDER = Path(__file__).parents[1] / "docs" / "images"
WIDTH, LINE = 720, 28
DEMO = (  # what `make demo` prints before its figures: tests/test_docs.py compares
    "(a tiny model for demonstrations answers; name a real one with --model google/gemma-3-4b-it)",
    "> Hello!",
    "Hello! How can I help you?",
    "> Convert 12 miles to kilometres.",
    "  convert(miles=12)",
    "  = 19.3 km",
    "19.3 km.",
    "> Add a note: Buy stamps for Наталья",
    "  add_note(text='Buy stamps for Наталья')",
    "  = Stored as note 1",
    "Stored as note 1.",
    "> Look up the weekday of 2026-12-24.",
    "  weekday(day='2026-12-24')",
    "  = Thursday",
    "Thursday.",
    "> Thank you!",
    "You are welcome!",
)
BLUE, GREEN, GRAY, YELLOW, RED = "#c9d7f8", "#c5e8cc", "#e4e4e4", "#fbe3a6", "#f8c9c4"


class Drawing:
    """Boxes, words and arrows, which become an SVG."""

    def __init__(self, title: str, lines: int) -> None:
        self.title, self.height, self.parts = title, LINE * lines + 16, list[str]()

    def words(self, x: float, line: float, text: str, *, anchor: str = "start", bold: bool = False) -> None:
        """Write a line."""
        weight = ' font-weight="bold"' if bold else ""
        y = 8 + LINE * line + 18
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def box(self, x: float, line: float, wide: float, text: str, color: str) -> None:
        """Draw a box with words in it."""
        y = 8 + LINE * line + 2
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{LINE - 4}" rx="3" fill="{color}" stroke="#666"/>'
        )
        self.words(x + wide / 2, line, text, anchor="middle")

    def arrow(self, x: float, line: float, to: float) -> None:
        """Draw an arrow from left to right, or from right to left."""
        y, head = 8 + LINE * line + LINE / 2, 6 if to > x else -6
        self.parts.append(f'<path d="M{x:g} {y:g}H{to:g}m{-head} -4l{head} 4l{-head} 4" fill="none" stroke="#333"/>')

    def svg(self) -> str:
        """Return the drawing."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif" '
            f'font-size="13" role="img"><title>{escape(self.title)}</title>'
            f'<rect width="{WIDTH}" height="{self.height}" rx="6" fill="#fff"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def ladders() -> str:
    """How prompts of four lengths are read, in chunks of which there are programs."""
    sizes = Ladders(chunks=(16, 256)).for_context(131072).for_kernels(padding_is_free=True)
    drawing = Drawing("Prompts of any length are read in chunks of a few sizes", 6)
    drawing.words(12, 0, f"Chunks of {', '.join(map(str, sizes.chunks))} tokens are compiled. A prompt of …", bold=True)
    for line, count in enumerate((57, 58, 300, 700), 1):
        drawing.words(100, line, f"{count} tokens", anchor="end")
        x = 112.0
        for chunk in sizes.plan_chunks(count):
            wide = 16 + chunk.size * 0.7
            padding = chunk.size - chunk.tokens
            text = str(chunk.size) if not padding or wide < 100 else f"{chunk.size}, of which {padding} are padding"
            drawing.box(x, line, wide, text, BLUE if not padding else YELLOW)
            x += wide + 3
    total = sizes.programs().total
    drawing.words(
        12,
        5,
        f"Yellow chunks have padding, which costs nothing. Any context needs {total} programs at most.",
    )
    return drawing.svg()


def reuse() -> str:
    """Draw the tokens that two turns of a conversation, and a branch of it, read."""
    drawing = Drawing("Of a longer prompt only what is new is read", 6)
    drawing.words(
        12, 0, "Each turn sends the whole conversation. Green is on the device already, yellow is read.", bold=True
    )
    turns = {
        "turn 1": [("system, tools", 150, YELLOW), ("question", 80, YELLOW)],
        "turn 2": [
            ("system, tools", 150, GREEN),
            ("question", 80, GREEN),
            ("answer", 80, GREEN),
            ("result", 90, YELLOW),
        ],
        "a branch": [("system, tools", 150, GREEN), ("question", 80, GREEN), ("another question", 120, YELLOW)],
        "another scope": [("system, tools", 150, YELLOW), ("question", 80, YELLOW)],
    }
    for line, (name, parts) in enumerate(turns.items(), 1):
        drawing.words(100, line, name, anchor="end")
        x = 112.0
        for text, wide, color in parts:
            drawing.box(x, line, wide, text, color)
            x += wide + 3
    drawing.words(
        12, 5, "The answer's own tokens are kept as they were generated. A branch shares the pages of what is common."
    )
    return drawing.svg()


def drafts() -> str:
    """How guessed tokens are checked in one step."""
    most = Ladders().draft
    drawing = Drawing("Guessed tokens are checked in one step", 5)
    drawing.words(
        12, 0, f"The text repeats itself, so what followed before is guessed: up to {most} tokens.", bold=True
    )
    rows = {
        "before": [(word, GRAY) for word in ('"city":', '"Oslo",', '"days":', "4", "}")],
        "now": [('"city":', GRAY)],
        "guessed": [('"city":', GRAY), ('"Oslo",', GREEN), ('"days":', GREEN), ("4", RED), ("}", RED)],
    }
    for line, (name, words) in enumerate(rows.items(), 1):
        drawing.words(100, line, name, anchor="end")
        for place, (word, color) in enumerate(words):
            drawing.box(112 + 95 * place, line, 90, word, color)
    drawing.words(
        12, 4, "One step scores all of them. Those that would have been picked are kept (green), the others dropped."
    )
    return drawing.svg()


def grammars() -> str:
    """Which parts of an object the model chooses."""
    drawing = Drawing("The model chooses values, and the grammar writes the rest", 4)
    drawing.words(12, 0, "An object with a city and a number of days, held to its schema:", bold=True)
    x = 12.0
    for text, forced in (('{"city": "', True), ("Oslo", False), ('", "days": ', True), ("4", False), ("}", True)):
        wide = 20 + 9 * len(text)
        drawing.box(x, 1, wide, text, GRAY if forced else BLUE)
        x += wide + 3
    drawing.words(12, 2, "Gray has no alternative, and is appended without asking the model.")
    drawing.words(
        12, 3, "Blue is drawn freely and then checked; what is illegal is drawn again among the legal tokens."
    )
    return drawing.svg()


def packed() -> str:
    """Draw the bits of a matrix in each format."""
    config = published("gemma-3-4b")
    dense = total_bytes(abstract(config))
    drawing = Drawing("Packed weights", 5)
    drawing.words(12, 0, "Gemma 3 4B: groups of 32 numbers share a scale of 16 bits.", bold=True)
    for line, (name, bits, color) in enumerate(
        (("bfloat16", 16.0, GRAY), ("int8", 8 + 16 / 32, BLUE), ("int4", 4 + 16 / 32, GREEN)), 1
    ):
        drawing.words(100, line, name, anchor="end")
        drawing.box(112, line, 32 * bits, f"{bits:g} bits a number", color)
    drawing.words(12, 4, f"All of it in bfloat16 is {dense / 1e9:.1f} GB. With int4 the embedding keeps eight bits.")
    return drawing.svg()


def cache() -> str:
    """Draw the way of a program in the first process, and in the second one."""
    drawing = Drawing("What one process compiled the next one finds", 5)
    drawing.words(12, 0, "A program is named by what it is made of, and kept under its name.", bold=True)
    drawing.words(100, 1, "process 1", anchor="end")
    for place, (text, color) in enumerate((("name", GRAY), ("trace", RED), ("compile", RED), ("run", BLUE))):
        drawing.box(112 + 120 * place, 1, 90, text, color)
        if place:
            drawing.arrow(112 + 120 * place - 28, 1, 112 + 120 * place - 2)
    drawing.words(560, 2, "kept, with its SHA-256", anchor="middle")
    drawing.words(100, 3, "process 2", anchor="end")
    for place, (text, color) in enumerate((("name", GRAY), ("read, check", GREEN), ("run", BLUE))):
        drawing.box(112 + 120 * place, 3, 90, text, color)
        if place:
            drawing.arrow(112 + 120 * place - 28, 3, 112 + 120 * place - 2)
    drawing.words(12, 4, "The second process neither traces nor compiles. A damaged file is deleted, and made again.")
    return drawing.svg()


def memory() -> str:
    """How two models take turns in a budget."""
    drawing = Drawing("Models share a budget", 6)
    drawing.words(12, 0, "A budget in which the large model fits, but not both:", bold=True)
    steps = {
        "small asked": [("small", 110, BLUE), ("talk", 50, GREEN)],
        "large asked": [("large", 330, BLUE), ("talk", 50, GREEN)],
        "small again": [("small", 110, BLUE), ("talk", 50, GREEN)],
    }
    for line, (name, parts) in enumerate(steps.items(), 1):
        drawing.words(100, line, name, anchor="end")
        drawing.box(112, line, 420, "", "#fff")
        x = 112.0
        for text, wide, color in parts:
            drawing.box(x, line, wide, text, color)
            x += wide
        if line > 1:
            drawing.words(545, line, "the other one goes")
    drawing.words(12, 4, "Idle conversations go first, then models that nobody uses. What is in use never goes.")
    drawing.words(12, 5, "A conversation that went waits in host memory, where that is faster than reading it again.")
    return drawing.svg()


def rivals() -> str:
    """Draw the speed of this package next to the fastest rival's, from the newest report."""
    page = (
        (FOLDER.parent / "benchmarks.md").read_text().partition("<!-- who wins:")[2].partition("<!-- who wins: end")[0]
    )
    heading, _, *rows = (line for line in page.partition("\n\n")[2].split("\n\n")[0].splitlines() if line)
    when, *files = (cell.strip() for cell in heading.strip("| ").split("|"))
    drawing = Drawing("How fast this package is, compared with the fastest rival", len(rows) + 3)
    drawing.words(
        12,
        0,
        "Times as fast as the fastest of llama.cpp, ik_llama.cpp and vLLM. Green: this package is faster.",
        bold=True,
    )
    wide, lane = 60.0, 140
    for place, name in enumerate(files):
        drawing.words(300 + lane * place, 1, name.removeprefix("270M "), bold=True)
    for line, row in enumerate(rows, 2):
        work, *figures = (cell.strip() for cell in row.strip("| ").split("|"))
        drawing.words(290, line, work.partition(", ")[0], anchor="end")
        for place, figure in enumerate(figures):
            if ratio := re.match(r"\**([\d.]+) ×", figure):
                times = float(ratio[1])
                drawing.box(
                    300 + lane * place,
                    line,
                    min(wide * times, lane - 8),
                    f"{times:g} ×",
                    GREEN if times >= 1 else YELLOW,
                )
    drawing.words(
        12,
        len(rows) + 2,
        f"The real Gemma 3 270M, two cores, {when.removeprefix('on ')}. Bars end at {(lane - 8) / wide:g} ×.",
    )
    return drawing.svg()


def terminal() -> str:
    """Draw the output of the demo, as a terminal shows it."""
    high = 20 * (len(DEMO) + 1) + 24
    lines = [f'<rect width="{WIDTH}" height="{high}" rx="6" fill="#1e1e2e"/>']
    for number, line in enumerate(("$ make demo", *DEMO)):
        color = {"$": "#a6e3a1", ">": "#89b4fa", " ": "#f9e2af", "(": "#7f849c"}.get(line[0], "#cdd6f4")
        lines.append(f'<text x="14" y="{30 + 20 * number}" fill="{color}" xml:space="preserve">{escape(line)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" font-family="monospace" '
        'font-size="12" role="img"><title>make demo</title>\n' + "\n".join(lines) + "\n</svg>\n"
    )


DIAGRAMS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {each.__name__: each for each in (ladders, reuse, drafts, grammars, packed, cache, memory, rivals, terminal)}
)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw())
        print(FOLDER / f"{name}.svg")
