"""The table of what was run in LangChain's surroundings: every row has a test, and it is on its page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.ecosystem import table

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "langchain.md"


def test_every_row_has_a_test_and_every_test_a_row():
    found = {
        (path.stem, name)
        for path in FOLDER.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
        if path.stem != "test_table"
    }
    assert set(table.ROWS.values()) == found - {("test_shipped_middleware", "test_every_middleware_is_here")}


def test_the_page_has_a_mark_in_every_row():
    page = PAGE.read_text()
    _, _, rest = page.partition(table.BEGIN)
    shown, _, _ = rest.partition(table.END)
    for what, (_, test) in table.ROWS.items():
        assert f"| {what} | ✔ | `{test}` |" in shown


def test_a_test_that_failed_in_one_of_its_cases_has_no_mark():
    report = """<testsuite>
      <testcase classname="tests.ecosystem.test_graphs" name="test_an_interrupt_waits_for_a_person" />
      <testcase classname="tests.ecosystem.test_servers" name="test_processes_of_their_own[a]" />
      <testcase classname="tests.ecosystem.test_servers" name="test_processes_of_their_own[b]"><failure /></testcase>
    </testsuite>"""
    text = table.table(table.outcomes(report))
    assert "| LangGraph: interrupts | ✔ |" in text
    assert "(refused) | failure |" in text
    assert "| pytest-xdist | not run |" in text
    page = table.replaced(f"a\n{table.BEGIN}\nbefore this\n{table.END}\nb", text)
    assert page.startswith("a\n")
    assert page.endswith("\nb")
    assert "before this" not in page
