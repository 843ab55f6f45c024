"""The walk through one warm ``invoke`` in ``docs/architecture.md`` is the one that a warm ``invoke`` takes."""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from langchain_core.messages import HumanMessage

import langchain_gemma_jax
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from tests.chat.tiny import CONTEXT

PACKAGE = Path(langchain_gemma_jax.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
MOST_HOPS = 18
SCRIPTS = (
    "chat_model.py",
    "chat/calling/answerer.py",
    "chat/calling/call.py",
    "engine/loop/",
)  # whose lines the hops are
ASIDE = {"private", "config.py"}  # now and then: the status file


@dataclass(frozen=True)
class Hop:
    """A row of the page's table."""

    thread: str
    file: str
    function: str
    uses: tuple[str, ...]


def hops_of_the_page() -> list[Hop]:
    _, _, walk = PAGE.read_text().partition("## One warm `invoke`")
    rows = re.findall(
        r"^\| (\d+) \| (caller|owner) \| `([\w.]+)` in `([\w./]+)`[^|]*\|[^|]*\| (.*) \|$", walk, re.MULTILINE
    )
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    return [Hop(thread, file, name, tuple(re.findall(r"`([\w./]+)`", uses))) for _, thread, name, file, uses in rows]


class Entry(NamedTuple):
    """A function that was entered."""

    thread: str
    file: str
    function: str
    by: str  # the file of who called it


class Recorder:
    """Which functions of the package were entered, in their order: by which thread, and from which file."""

    def __init__(self) -> None:
        self.on = False
        self.entered: list[Entry] = []
        self._caller = threading.get_ident()

    def __call__(self, frame, event, _argument):
        if self.on and event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            thread = "caller" if threading.get_ident() == self._caller else "owner"
            self.entered.append(Entry(thread, _file(frame), frame.f_code.co_qualname, _file(frame.f_back)))


def _file(frame) -> str:
    return frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")


@pytest.fixture
def recorded(chat_of, monkeypatch) -> list[Entry]:
    """What a turn entered that needed nothing new."""
    recorder, said, warm = Recorder(), [HumanMessage("Hello")], 0
    ladders = Ladders(chunks=(16, 256), capacities=(CONTEXT,), rows=(1,))
    monkeypatch.setattr(process, "_engine", Engine(Settings(ladders=ladders)))
    model = chat_of(max_tokens=6)
    try:
        # The owner thread calls this at the end of each turn, and so records from the turn on that comes next.
        process.engine().on_finished(lambda _: sys.setprofile(recorder if warm else None))
        for _ in range(12):
            recorder.entered.clear()
            recorder.on = warm > 1
            sys.setprofile(recorder if recorder.on else None)
            answer = model.invoke(said)
            sys.setprofile(None)
            recorder.on = False
            new = answer.response_metadata["timings"]["compiled"] > 0
            if recorder.entered and not new:
                return list(recorder.entered)
            warm += not new
            said += [answer, HumanMessage("And?")]
    finally:
        sys.setprofile(None)
        assert process.engine().close(30)
    raise AssertionError("no turn was a warm one")


@pytest.mark.long
def test_the_page_has_every_hop_in_its_order_and_nothing_else_is_entered(recorded):
    hops = hops_of_the_page()
    assert 10 < len(hops) <= MOST_HOPS
    for thread in ("caller", "owner"):
        mine, places = [entry for entry in recorded if entry.thread == thread], []
        for hop in (hop for hop in hops if hop.thread == thread):
            found = [at for at, entry in enumerate(mine) if (entry.file, entry.function) == (hop.file, hop.function)]
            assert found, f"{hop.function} in {hop.file} is not entered by the {thread}"
            assert mine[found[0]].by.startswith(SCRIPTS), (
                f"{hop.function} is no hop: {mine[found[0]].by} has no part in the story"
            )
            places.append(found[0])
        assert places == sorted(places), f"the {thread} takes the hops in another order"
    named = {hop.file for hop in hops} | {place for hop in hops for place in hop.uses}
    entered = {entry.file for entry in recorded}
    assert sorted(entered - {file for file in entered if _is_in(file, {*SCRIPTS, *ASIDE, *named})}) == [], (
        "entered in a warm invoke, and the page does not say so"
    )
    assert [place for place in sorted(named) if not any(_is_in(file, {place}) for file in entered)] == [], (
        "the page names it, and a warm invoke does not enter it"
    )


def _is_in(file: str, places: set[str]) -> bool:
    return any(file == place or file.startswith(f"{place.removesuffix('/')}/") for place in places)
