"""The walks in ``docs/architecture.md`` are those that a warm ``invoke``, a stream and a served request take."""

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
from langchain_gemma_jax.chat.calling import starting
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.executables.background import Background
from tests.chat.tiny import CONTEXT
from tests.serving import serving

PACKAGE = Path(langchain_gemma_jax.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
MOST_HOPS = 14
SCRIPTS = (
    "chat_model.py",
    *(f"chat/calling/{name}.py" for name in ("answerer", "live_answer", "call", "served_model")),
    "engine/loop/",
)  # whose lines the hops are: a hop leads out of these
SERVED = (*SCRIPTS, "chat/calling/starting.py", "server/", "client/", "wire/")
THREADS = {"gemma-jax-engine": "owner", "gemma-jax-call": "worker", "gemma-jax-server": "loop"}
ASIDE = {"private", "config.py"}  # now and then: the status file


@dataclass(frozen=True)
class Hop:
    """A row of the page's table."""

    thread: str
    file: str
    function: str
    uses: tuple[str, ...]


def hops_of_the_page(title: str) -> list[Hop]:
    _, _, walk = PAGE.read_text().partition(f"## {title}\n")
    rows = re.findall(
        r"^\| (\d+) \| (\w+) \| `([\w.]+)` in `([\w./]+)`[^|]*\|[^|]*\|(?: (.*) \|)?$",
        walk.partition("\n## ")[0],
        re.MULTILINE,
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

    def __init__(self, called: str = "caller") -> None:
        """``called``: the name of this thread in the page's table."""
        self.on = False
        self.entered: list[Entry] = []
        self._caller, self._called = threading.get_ident(), called

    def __call__(self, frame, event, _argument):
        if self.on and event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            name = threading.current_thread().name
            thread = next((known for begin, known in THREADS.items() if name.startswith(begin)), "other")
            thread = self._called if threading.get_ident() == self._caller else thread
            self.entered.append(Entry(thread, _file(frame), frame.f_code.co_qualname, _file(frame.f_back)))


def _file(frame) -> str:
    return frame.f_code.co_filename.removeprefix(f"{PACKAGE}/")


@pytest.fixture
def recorded(chat_of, monkeypatch) -> list[Entry]:
    """Return the functions that a turn entered which needed nothing new."""
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


def check_order(hops: list[Hop], recorded: list[Entry], scripts: tuple[str, ...]) -> None:
    """Each thread takes its hops in the page's order, and each is a line of the story's own files."""
    for thread in {hop.thread for hop in hops}:
        mine, places = [entry for entry in recorded if entry.thread == thread], []
        for hop in (hop for hop in hops if hop.thread == thread):
            found = [at for at, entry in enumerate(mine) if (entry.file, entry.function) == (hop.file, hop.function)]
            assert found, f"{hop.function} in {hop.file} is not entered by the {thread}"
            assert any(mine[at].by.startswith(scripts) for at in found), (
                f"{hop.function} is no hop: {mine[found[0]].by} has no part in the story"
            )
            places.append(found[0])
        assert places == sorted(places), f"the {thread} takes the hops in another order"


@pytest.mark.long
def test_the_page_has_every_hop_in_its_order_and_nothing_else_is_entered(recorded):
    hops = hops_of_the_page("One warm `invoke`")
    assert 10 < len(hops) <= MOST_HOPS
    assert not [hop for hop in hops if hop.file.startswith(SCRIPTS)], "a hop leads out of the story's own files"
    check_order(hops, recorded, SCRIPTS)
    named = {hop.file for hop in hops} | {place for hop in hops for place in hop.uses}
    entered = {entry.file for entry in recorded}
    assert sorted(entered - {file for file in entered if _is_in(file, {*SCRIPTS, *ASIDE, *named})}) == [], (
        "entered in a warm invoke, and the page does not say so"
    )
    assert [place for place in sorted(named) if not any(_is_in(file, {place}) for file in entered)] == [], (
        "the page names it, and a warm invoke does not enter it"
    )


def ring(how: str) -> str:
    """Ring a bell."""
    return how


@pytest.mark.long
def test_a_streamed_call_takes_the_hops_of_the_page(whole_of):
    model, recorder = whole_of("gemma4").bind_tools([ring], tool_choice="any"), Recorder()
    recorder.on = True
    sys.setprofile(recorder)
    try:
        *_, last = chunks = list(model.stream("Ring"))
    finally:
        sys.setprofile(None)
    assert any(chunk.tool_call_chunks for chunk in chunks)
    assert last.chunk_position == "last"
    hops = hops_of_the_page("One streamed tool call")
    assert len(hops) == 6
    check_order(hops, recorder.entered, SCRIPTS)


@pytest.mark.long
def test_a_served_request_takes_the_hops_of_the_page_and_one_hand_over(chat_of, tmp_path, monkeypatch):
    recorder, handed = Recorder("client"), []
    folder = chat_of().model
    ladders = Ladders(chunks=(16, 256), capacities=(CONTEXT,), rows=(1,))
    monkeypatch.setattr(process, "_engine", Engine(Settings(ladders=ladders)))
    monkeypatch.setattr(starting, "_workers", starting._threads())  # threads that begin now are followed
    plain = Background.submit
    monkeypatch.setattr(
        Background,
        "submit",
        lambda self, *given: (self is starting._workers and handed.append(1), plain(self, *given))[1],
    )
    threading.setprofile(recorder)
    try:
        with serving(tmp_path, models=(folder,)) as server:
            model = chat_of(server=server.listening.shown, max_tokens=6)
            model.invoke("Hello")  # which loads it
            handed.clear()
            recorder.on = True
            sys.setprofile(recorder)
            assert list(model.stream("Hello"))
            sys.setprofile(None)
            recorder.on = False
        assert len(handed) == 1, "from the event loop to the one thread that reads the request and submits it"
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        assert process.engine().close(30)
    hops = hops_of_the_page("One served request")
    assert len(hops) == 9
    check_order(hops, recorder.entered, SERVED)


def _is_in(file: str, places: set[str]) -> bool:
    return any(file == place or file.startswith(f"{place.removesuffix('/')}/") for place in places)
