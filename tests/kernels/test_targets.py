"""Names of kernels: no two are the same, and each that XLA calls has the version of its arguments."""

from __future__ import annotations

from langchain_gemma_jax.kernels.targets import (
    ATTENTION,
    FUSED_OPS,
    IN_BLOCKS,
    KINDS,
    VERSION,
    function,
    fused_op,
    target,
)


def test_no_two_kernels_have_one_name_and_all_have_the_version():
    called = [target(kind) for kind in KINDS] + [target(kind, rounded=True) for kind in IN_BLOCKS]
    called += [ATTENTION, *map(fused_op, FUSED_OPS)]
    assert len(set(called)) == len(called) == len(KINDS) + len(IN_BLOCKS) + len(FUSED_OPS) + 1
    assert all(name.startswith("gemma_jax_") and name.endswith(f"_{VERSION}") for name in called)
    assert target("Q8_0", rounded=True) == f"{function('Q8_0', rounded=True)}_{VERSION}"
