"""The block of a page that a program writes, between two comments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """The place of a program's figures on a page."""

    name: str
    program: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: written by {self.program} -->"

    @property
    def end(self) -> str:
        return f"<!-- {self.name}: end -->"


FORWARD = Block("figures", "make bench-forward")
ENGINE = Block("engine figures", "benchmarks/engine/engine.py")
REAL = Block("real figures", "make bench-real")
WINS = Block("who wins", 'make bench ARGS="--report VERSION"')
SAME_FILE = Block("figures of the same files", "benchmarks/files/same_file.py")
FAMILIES = Block("families figures", "benchmarks/families/families.py")


def replace_block(page: str, text: str, block: Block) -> str:
    """The page with ``text`` between the block's markers, whatever was there before.

    Raises:
        ValueError: the page does not have each marker once, in this order.
    """
    begin, end = block.begin, block.end
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"expected one line {begin!r} and, below it, one {end!r}.")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
