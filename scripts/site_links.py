"""A hook of MkDocs: files beside ``docs/`` that pages link to are part of the site.

On disk, and where a repository is shown, ``../examples/agent.py`` leads to the file. A site has only what lies in its
own folder. So each such file is copied there as plain text, and the link leads to the copy. A link to a file that does
not exist stays as it is, and MkDocs warns of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"\]\(\.\./(?P<path>[^)#\s]+)(?:#[^)\s]*)?\)")


def copy_of(path: str) -> str:
    """Return where the copy of a file lies: as text, so that a browser shows it and MkDocs takes it for no page."""
    return f"files/{path}.txt"


def outside_of(markdown: str) -> list[str]:
    """Return the files beside ``docs/`` that a page links to."""
    return [match["path"] for match in OUTSIDE.finditer(markdown) if (ROOT / match["path"]).is_file()]


def lead_to_copies(markdown: str) -> str:
    """Return a page whose links to those files lead to their copies."""

    def led(match: re.Match[str]) -> str:
        return f"]({copy_of(match['path'])})" if (ROOT / match["path"]).is_file() else match[0]

    return OUTSIDE.sub(led, markdown)


# What MkDocs calls. Nothing else here imports it.


def on_files(files: Any, config: Any) -> Any:
    """Add the copies."""
    from mkdocs.structure.files import File

    for page in list(files.documentation_pages()):
        for path in outside_of(page.content_string):
            if files.get_file_from_path(copy_of(path)) is None:
                files.append(File.generated(config, copy_of(path), content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead the links of a page to the copies."""
    return lead_to_copies(markdown)
