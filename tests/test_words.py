"""The pages say things in plain American English: words that make the tone of a translation are not in them."""

from __future__ import annotations

import pytest

from scripts import words
from scripts.words import DOCS, main, pages, refused


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name if page.parent == DOCS else "the README")
def test_a_page_is_in_plain_words(page):
    assert refused(page.read_text()) == []


@pytest.mark.parametrize("tone", ["so many", "whoever", "nobody", "are told", "beside", "behind", "anew", "Licence"])
def test_each_refused_word_is_seen_in_prose_and_in_tables_and_not_in_code(tone):
    assert [line.partition(":")[0] for line in refused(f"# Title\n\nThe {tone} of it.\n")] == ["3"]
    assert len(refused(f"| a | {tone} |\n\n[{tone}](x.md)\n")) == 2
    assert refused(f"```text\n{tone}\n```\n`{tone}` [a](x.md#{tone})\n") == []
    assert refused(f"<!-- a: written by b -->\n{tone}\n<!-- a: end -->\n") == []


def test_words_that_only_look_like_them_are_let_through():
    assert refused("The inside of besides, a wrongly placed behindhand, retold, is toldX; somebodyX, canewood.") == []


def test_a_refused_word_fails_the_build_of_the_site_with_its_place(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Plain\n")
    assert main() == 0
    (tmp_path / "docs" / "a.md").write_text("# Title\n\nThere are so many.\n")
    assert main() == 1
    assert "docs/a.md:3: 'so many': write a number" in capsys.readouterr().out
    assert "scripts/words.py" in (DOCS.parent / "scripts" / "docs").read_text()
