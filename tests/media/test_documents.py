"""Documents as pictures of their pages."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from langchain_gemma_jax.errors import InstallationError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media import documents
from langchain_gemma_jax.media.budget import drawing
from langchain_gemma_jax.media.documents import LONGER_SIDE, looks_like_document, read_document
from langchain_gemma_jax.stopping import Stop, StoppedError
from tests.media.samples import nested_pdf, pdf

AT = "messages[0].content[0]"


def test_pages_are_drawn():
    pytest.importorskip("pypdfium2")
    first, second = read_document(pdf(2), 2, AT)
    assert first.pixels.shape == (LONGER_SIDE, LONGER_SIDE, 3)
    dark = first.pixels[:, :, 0] < 128
    assert 0.08 < dark.mean() < 0.10, "the square of 60 by 60 on 200 by 200"
    assert dark[LONGER_SIDE * 3 // 4, LONGER_SIDE // 4], "PDF counts from the bottom"
    assert (first.pixels == second.pixels).all()
    assert not first.pixels.flags.writeable
    assert first.digest == second.digest


@pytest.mark.long
def test_threads_draw_beside_each_other():
    pytest.importorskip("pypdfium2")
    data = pdf(3, 20)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_document(data, 3, AT), range(16)))
    assert all(np.array_equal(each[2].pixels, found[0][0].pixels) for each in found)


@pytest.fixture
def children(monkeypatch):
    """The processes that were started. None of them may be left."""
    pytest.importorskip("pypdfium2")
    found, real = [], subprocess.Popen

    def start(*args, **kwargs):
        found.append(real(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(documents.subprocess, "Popen", start)
    yield found
    assert all(child.returncode is not None for child in found), "each was waited for"
    assert drawing().held == 0


@pytest.mark.long
def test_a_document_that_takes_for_ever_is_stopped_and_others_beside_it_are_drawn(children):
    stop, ended = Stop(), []

    def draw_for_ever() -> None:
        with stop.over_this_work(), pytest.raises(StoppedError):
            read_document(nested_pdf(47, 3), 1, AT, cpu_s=600)
        ended.append(True)

    drawing_for_ever = threading.Thread(target=draw_for_ever)
    drawing_for_ever.start()
    while not children:
        time.sleep(0.001)
    for _ in range(3):
        assert len(read_document(pdf(), 1, AT)) == 1
    assert (len(children), ended) == (4, []), "it is still being drawn"
    stop.ask()
    drawing_for_ever.join()
    assert ended


@pytest.mark.long
def test_limits_of_time_and_memory_are_errors_of_the_document(children):
    with pytest.raises(MediaLimitError, match="more than the 1 seconds of a processor") as found:
        read_document(nested_pdf(47, 3), 1, AT, cpu_s=1)
    assert (found.value.at, found.value.limit) == (AT, "seconds")
    with Stop(time.monotonic() + 0.2).over_this_work(), pytest.raises(StoppedError):
        read_document(nested_pdf(47, 3), 1, AT)
    with pytest.raises(UnreadableMediaError, match=r"ended by SIG.* 512 MiB of memory"):
        read_document(nested_pdf(100, 4), 1, AT)
    assert len(children) == 3


def test_a_process_that_ends_or_says_nonsense_is_an_error_of_the_document(children, monkeypatch):
    ends = {
        "import os; os.abort()": "ended by SIGABRT",
        "import sys; sys.stdin.buffer.read()": "ended with status 0",
        "import sys; sys.stdin.buffer.read(); print('nonsense' * 9)": "ended ",
        # a page larger than any that was asked for
        "import sys; sys.stdout.buffer.write(bytes([1, 0, 0, 0] * 2 + [0] * 8 + [2, 0, 0, 0] + [255] * 12))": "ended ",
    }
    for program, said in ends.items():
        monkeypatch.setattr(documents, "_program", lambda program=program: program)
        with pytest.raises(UnreadableMediaError, match=said):
            read_document(pdf(), 1, AT)


def test_a_program_that_python_is_part_of_is_never_started_again(children, monkeypatch):
    python = sys.executable
    monkeypatch.setattr(documents, "get_executable", lambda: python)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(InstallationError, match=r"multiprocessing\.set_executable"):
        read_document(pdf(), 1, AT)
    monkeypatch.delattr(sys, "frozen")
    for found in ("/usr/sbin/apache2", "", None):
        monkeypatch.setattr(sys, "executable", found)
        monkeypatch.setattr(documents, "get_executable", lambda found=found: found)
        with pytest.raises(InstallationError, match=r"multiprocessing\.set_executable"):
            read_document(pdf(), 1, AT)
    assert not children
    monkeypatch.setattr(documents, "get_executable", lambda: python)
    assert len(read_document(pdf(), 1, AT)) == 1, "as somebody said"
    monkeypatch.setattr(documents, "get_executable", lambda: "/nothing/here")
    with pytest.raises(MediaError, match="no process could be started"):
        read_document(pdf(), 1, AT)


def test_what_is_refused():
    pytest.importorskip("pypdfium2")
    with pytest.raises(MediaLimitError, match="5 pages has more than the 4") as found:
        read_document(pdf(5), 4, AT)
    assert (found.value.at, found.value.limit) == (AT, "pages")
    for data in (b"%PDF-1.4 and nothing else", pdf()[:200], pdf(0)):
        with pytest.raises(UnreadableMediaError, match=r"broken|no pages"):
            read_document(data, 4, AT)
    assert [len(read_document(pdf(1, side), 1, AT)) for side in (1, 14_400)] == [1, 1], (
        "as small and as large as may be"
    )
    assert looks_like_document(b"\n" + pdf())
    assert not looks_like_document(b"%PDF")


def test_without_pdfium_or_pillow_the_error_says_what_to_install(monkeypatch):
    for module, name in (("pypdfium2", "pypdfium2"), ("PIL", "Pillow")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InstallationError, match=rf"{name} cannot be imported.*langchain-gemma-jax\[pdf\]"):
            read_document(pdf(), 4, AT)
