"""A folder of invoices to a table with their sum. PDFs go the same way, to a Gemma that sees: docs/images.md.

python examples/recipes/invoices.py invoices/ google/gemma-4-E4B-it
"""

import csv
import sys
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax


class Invoice(BaseModel):
    """An invoice. All of it stands in the text."""

    seller: str = Field(max_length=40)
    number: str = Field(max_length=20)
    total: Decimal = Field(ge=0, decimal_places=2, max_digits=12)


folder, model = (*map(str, sys.argv[1:]), *("invoices", "sprout-m")[len(sys.argv) - 1 :])
if not sys.argv[1:]:  # two to try
    Path(folder).mkdir(exist_ok=True)
    for number, total in ("R-1", "120.50"), ("R-2", "980.00"):
        text = f"The seller is Ada Press. The number is {number}. The total is {total}."
        Path(folder, f"{number}.txt").write_text(text)
files = sorted(Path(folder).glob("*.txt"))
read = ChatGemmaJax(model=model, temperature=0, max_tokens=120).with_structured_output(Invoice)
found = read.batch([file.read_text() for file in files], return_exceptions=True)
with Path(folder, "invoices.csv").open("w", newline="") as table:
    rows = csv.writer(table)
    rows.writerow(["file", *Invoice.model_fields, "problem"])
    for file, each in zip(files, found, strict=True):
        values = [*each.model_dump().values(), ""] if isinstance(each, Invoice) else ["", "", "", each]
        rows.writerow([file.name, *values])
print(f"{table.name}, with a sum of {sum(each.total for each in found if isinstance(each, Invoice)):.2f}")
