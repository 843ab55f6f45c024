"""Ten thousand rows in a night, with progress; started again, it goes on. A row is {"text": ...}, a line each.

python examples/recipes/nightly_batch.py rows.jsonl google/gemma-3-1b-it
"""

import asyncio
import json
import sys
from pathlib import Path

from pydantic import BaseModel, Field
from tqdm import tqdm

from langchain_gemma_jax import ChatGemmaJax


class Order(BaseModel):
    """What somebody orders."""

    item: str = Field(max_length=20)
    count: int = Field(ge=1)


rows, model = (*sys.argv[1:], *("rows.jsonl", "sprout-s")[len(sys.argv) - 1 :])
done = Path(rows).with_suffix(".done.jsonl")
if not sys.argv[1:] and not Path(rows).exists():  # some to try
    Path(rows).write_text("".join(f'{{"text": "The item is soup. The count is {count}."}}\n' for count in range(1, 13)))
order = ChatGemmaJax(model=model, temperature=0, max_tokens=60).with_structured_output(Order)
lines = Path(rows).read_text().strip().split("\n")
there = len(done.read_text().splitlines()) if done.exists() else 0
with done.open("a", 1) as found, tqdm(total=len(lines), initial=there, unit=" rows") as progress:
    for start in range(there, len(lines), 256):  # what is asked again if the machine goes down
        block = [json.loads(line) for line in lines[start : start + 256]]  # whose calls share the engine's steps
        orders = asyncio.run(order.abatch([row["text"] for row in block], return_exceptions=True))
        for row, each in zip(block, orders, strict=True):
            result = {"order": each.model_dump()} if isinstance(each, Order) else {"error": str(each)}
            found.write(json.dumps(row | result) + "\n")
        progress.update(len(block))
print(done.read_text().partition("\n")[0])
