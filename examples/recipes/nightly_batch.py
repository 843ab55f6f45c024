"""Ten thousand rows in a night, with progress; started again, it goes on. A row is {"text": ...}, a line each.

python examples/recipes/nightly_batch.py rows.jsonl google/gemma-3-1b-it
"""

import asyncio
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from langchain_gemma_jax import ChatGemmaJax

AT_ONCE = 256  # rows: what is asked again if the machine goes down
rows, model = (*sys.argv[1:], *("rows.jsonl", "sprout-s")[len(sys.argv) - 1 :])
done = Path(rows).with_suffix(".done.jsonl")
if not Path(rows).exists():  # some to try
    Path(rows).write_text("".join(f'{{"text": "The {what} is great."}}\n' for what in ("book", "boat", "soup") * 4))
label = ChatGemmaJax(model=model, temperature=0, max_tokens=16).with_structured_output(Literal["good", "bad"])
there = len(done.read_text().splitlines()) if done.exists() else 0
with Path(rows).open() as lines, done.open("a") as found, tqdm(initial=there, unit=" rows") as progress:
    todo = islice(lines, there, None)
    while block := [json.loads(line) for line in islice(todo, AT_ONCE)]:  # whose calls share the engine's steps
        labels = asyncio.run(label.abatch([row["text"] for row in block], return_exceptions=True))
        for row, each in zip(block, labels, strict=True):
            found.write(json.dumps(row | {"error" if isinstance(each, Exception) else "label": str(each)}) + "\n")
        found.flush()
        progress.update(len(block))
print(done.read_text()[:200])
