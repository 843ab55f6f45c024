"""Objects out of a folder of texts: all of them at once, and each valid.

python examples/extract_folder.py                                     # some letters, made on the spot
python examples/extract_folder.py letters/ google/gemma-4-E4B-it      # your own *.txt
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from langchain_core.exceptions import OutputParserException
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax, engine

LETTERS = {
    "one.txt": "The city is Oslo. The days are 4.",
    "two.txt": "The city is Lyon. The days are 12.",
    "three.txt": "The city is Graz. The days are 7.",
}


class Visit(BaseModel):
    """A visit to a city."""

    city: str = Field(max_length=40)
    days: int = Field(ge=1, le=365)


def main(folder: Path, llm: ChatGemmaJax) -> None:
    """Read the texts in batches, and print a line for each. What cannot be read is told, and stops nothing."""
    files = sorted(folder.glob("*.txt"))
    to_visit = llm.with_structured_output(Visit)
    # Up to 64 calls are on their way at once, and share the engine's steps.
    for file, found in zip(
        files, to_visit.batch([file.read_text() for file in files], return_exceptions=True), strict=True
    ):
        if isinstance(found, OutputParserException):  # cut off before it was whole
            print(f"{file.name}: {found}")
        elif isinstance(found, Exception):
            raise found
        else:
            print(f"{file.name}: {found!r}")
    report = engine().report()
    print(f"{len(files)} texts; {report.forced_tokens} of {report.generated_tokens} tokens had no alternative")


if __name__ == "__main__":
    asked = ChatGemmaJax(model=sys.argv[2] if sys.argv[2:] else "sprout-m", temperature=0, max_tokens=100)
    if sys.argv[1:]:
        main(Path(sys.argv[1]), asked)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in LETTERS.items():
                Path(scratch, name).write_text(text)
            main(Path(scratch), asked)
