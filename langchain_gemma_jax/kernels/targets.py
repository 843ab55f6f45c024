"""The names of the kernels in XLA: plain values, shared by traced code and by ``library.py``."""

from __future__ import annotations

VERSION = "v4"  # of the targets' arguments: a part of their names, and so of every program that calls them
KINDS = (
    "F32", "F16", "BF16", "Q8_0", "Q4_0", "INT4", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K",
    "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ1_0", "TQ2_0", "MXFP4",
    "NVFP4", "Q1_0",
)  # fmt: skip
IN_BLOCKS = KINDS[3:]  # formats that can be multiplied with rounded activations

ATTENTION = f"gemma_jax_attention_{VERSION}"
VACANT = f"gemma_jax_vacant_{VERSION}"  # memory that nothing is written to
FUSED_OPS = ("norm", "join", "heads", "gated", "best")  # the operations between products, and the one after the last


def fused_op(name: str) -> str:
    """Return the registered name of one of ``FUSED_OPS``."""
    return f"gemma_jax_{name}_{VERSION}"


def target(kind: str, *, rounded: bool = False) -> str:
    """Return the registered name of the product with a kind of matrix; ``rounded``: of rounded activations."""
    return f"{function(kind, rounded=rounded)}_{VERSION}"


def function(kind: str, *, rounded: bool = False) -> str:
    """Return the symbol of that product in the library."""
    return f"gemma_jax_{'rounded' if rounded else 'product'}_{kind}"
