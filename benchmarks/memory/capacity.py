"""The memory that each Gemma needs, by the package's own predictions: weights, conversations, and how many have room.

    python benchmarks/memory/capacity.py           # writes the table of docs/scale.md
    python benchmarks/memory/capacity.py --print   # shows it

Nothing is measured and no weights are needed: the engine reserves these bytes before it reads a model.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.page import Block, replace_block
from langchain_gemma_jax.engine.api.model_estimate import bytes_of_conversation, first_workspace
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.served import LOOP_STEPS, ladders_for
from langchain_gemma_jax.models.configuration.abstract import total_bytes
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts

CAPACITY = Block("capacity", "benchmarks/memory/capacity.py")
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
SIZES = ("gemma-3-270m", "gemma-3-1b", "gemma-3-4b", "gemma-3-12b", "gemma-3-27b",
         "gemma-4-e2b", "gemma-4-e4b", "gemma-4-26b-a4b", "gemma-4-31b")  # fmt: skip
DEVICES = (24, 80)  # GB
CONTEXTS = (8192, 32768)  # tokens of a conversation
USABLE = 0.9  # of a device, as the engine has it by default


@dataclass(frozen=True)
class Needs:
    """The bytes of a model, dense in bfloat16."""

    weights: int
    workspace: int
    conversations: tuple[int, ...]
    """One of each of ``CONTEXTS``."""
    token: float
    """One token more, in a long conversation."""

    def room(self, device: float, context: int) -> int:
        """Return how many conversations of so many tokens fit a device beside the weights."""
        left = USABLE * device - self.weights - self.workspace
        return max(0, int(left // self.conversations[CONTEXTS.index(context)]))


def needs(size: str) -> Needs:
    """Return what a published size takes."""
    kind, recipe = Gemma(published(size)), Recipe()
    shape = Shape(kind, recipe, kind.vocab_size, kind.max_context, PageCounts(1, 1), loop_steps=LOOP_STEPS)
    ladders = ladders_for(Settings(), shape, "gpu")
    long = [bytes_of_conversation(shape, tokens) for tokens in (*CONTEXTS, 16384)]
    return Needs(
        weights=total_bytes(recipe.abstract(published(size))),
        workspace=first_workspace(shape, ladders) + bytes_of_conversation(shape, 1),
        conversations=tuple(long[:2]),
        token=(long[1] - long[2]) / (32768 - 16384),
    )


def table() -> str:
    """Return the table of the page."""
    heads = ["Gemma", "weights", "a token", *(f"{tokens:,} tokens" for tokens in CONTEXTS)]
    heads += [f"{size} GB: of {CONTEXTS[0]:,}" for size in DEVICES] + [f"of {CONTEXTS[1]:,}"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for size in SIZES:
        found = needs(size)
        cells = [size.removeprefix("gemma-"), f"{found.weights / 1e9:.2f} GB", f"{found.token / 1e3:.1f} kB"]
        cells += [f"{each / 1e6:,.0f} MB" for each in found.conversations]
        cells += [str(found.room(device * 1e9, CONTEXTS[0]) or "–") for device in DEVICES]
        cells.append(str(found.room(DEVICES[1] * 1e9, CONTEXTS[1]) or "–"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the table, or show it."""
    if arguments == ["--print"]:
        print(table())
    elif not arguments:
        PAGE.write_text(replace_block(PAGE.read_text(), table(), CAPACITY))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
