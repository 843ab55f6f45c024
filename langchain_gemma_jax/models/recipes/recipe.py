"""What the fastest way to multiply by a weight is: as plain values that a jitted program closes over."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from langchain_gemma_jax.models.abstract import Layout


class Form(StrEnum):
    """One way to compute ``x @ w`` for a few rows of ``x``. All give the same numbers up to rounding."""

    DOT = "dot"  # one product, as written
    EACH_ROW = "each_row"  # one product a row: where one row is fast and several fall off a cliff
    WEIGHTS_FIRST = "weights_first"  # the weights as the left operand, for more than EACH_UP_TO rows; else each row
    PAD_ROWS = "pad_rows"  # a lone row doubled: where it is the other way round


@dataclass(frozen=True)
class Plan:
    """How one kind of matrix lies in memory and is multiplied."""

    out_first: bool = True  # memory holds [out, in]
    one_row: Form = Form.DOT
    few_rows: Form = Form.DOT  # 2 to FEW_ROWS rows; more rows are always one product

    FEW_ROWS = 8
    EACH_UP_TO = 3


@dataclass(frozen=True)
class Recipe:
    """The plans for a model's matrices in one dtype on one machine.

    Hashable and comparable, so that it can be a static argument of a jitted function. The default
    is safe everywhere: right numbers, nobody's worst case known.
    """

    dtype: str = "bfloat16"
    layers: Plan = Plan()
    embed: Plan = Plan()
    # Attention runs one product for each (row, key-value head) pair up to this many pairs, and batched products
    # beyond. Batched, XLA:CPU transposes a copy of the keys in each step; a GPU would rather launch once.
    attention_pairs: int = 0
    # Whether the cache is written in a loop of one turn. Outside of a loop, XLA:CPU fuses the update with the reshape
    # in which attention reads the cache, writes all of it anew for that, and copies it twice to keep the old one. On a
    # GPU a loop costs more than that would.
    write_in_loop: bool = False
    source: str = dataclasses.field(default="default", compare=False)  # "probe", "disk", "override", "default"

    @property
    def layout(self) -> Layout:
        """How ``abstract(config, dtype, layout)`` has to lay out the arrays."""
        return Layout(layer_out_first=self.layers.out_first, embed_out_first=self.embed.out_first)
