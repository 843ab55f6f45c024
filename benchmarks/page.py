"""The block of a page that a program writes, between two comments."""

from __future__ import annotations

BEGIN, END = "<!-- figures: written by make bench -->", "<!-- figures: end -->"


def replace_block(page: str, block: str) -> str:
    """The page with ``block`` between its markers, whatever was there before.

    Raises:
        ValueError: the page does not have each marker once, in this order.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"expected one line {BEGIN!r} and, below it, one {END!r}.")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{block.strip()}\n\n{END}{after}"
