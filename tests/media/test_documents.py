"""Documents as pictures of their pages."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from langchain_gemma_jax.errors import InstallationError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.documents import LONGER_SIDE, looks_like_document, read_document
from tests.media.samples import pdf

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
def test_threads_draw_one_after_the_other():
    pytest.importorskip("pypdfium2")
    data = pdf(3, 20)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_document(data, 3, AT), range(16)))
    assert all(np.array_equal(each[2].pixels, found[0][0].pixels) for each in found)


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


def test_without_pdfium_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(InstallationError, match=r"langchain-gemma-jax\[pdf\]"):
        read_document(pdf(), 4, AT)
