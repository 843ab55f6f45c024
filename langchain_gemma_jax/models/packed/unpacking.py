"""Steps that several block formats unpack with. They use operators only, on numpy's arrays and JAX's alike."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

BlockArrays: TypeAlias = "tuple[Any, ...]"
"""The arrays of some blocks, numpy's or JAX's: each ``[..., block, *shape of the part]``."""

Slices: TypeAlias = "tuple[Any, ...]"
"""The numbers of some blocks: float32 ``[..., block, *any, lane]`` each. Slices stacked along the axis before the last
have a block's numbers in order: for each index of ``any`` the lanes of slice 0, then those of slice 1, and so on. The
numbers of one slice are unpacked by the same operations, and a product can be taken slice by slice."""

Bytes: TypeAlias = npt.NDArray[np.uint8]

LANES = 8  # numbers whose signs are in one byte, and those of a row of a grid in most formats


def f32(x: Any) -> Any:
    """Return numbers in float32."""
    return x.astype("float32")


def of_rank(constant: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
    """Return a constant with ``rank`` axes."""
    return constant.reshape((1,) * (rank - constant.ndim) + constant.shape)


def halves(packed: Any) -> tuple[Any, Any]:
    """Return the four-bit numbers in bytes: those in the lower halves, then those in the upper ones."""
    return packed & 15, packed >> 4


def signed(unsigned: Any, middle: int) -> Any:
    """Return codes of up to eight bits minus the one that means zero, in float32."""
    return f32(unsigned.astype("int8") - np.int8(middle))


def shifted(packed: Any, shifts: npt.NDArray[Any]) -> Any:
    """Return each number shifted right by each of the shifts: ``[..., shift]``."""
    return packed[..., None] >> of_rank(shifts.astype(packed.dtype), packed.ndim + 1)


def look_up(table: npt.NDArray[Any], index: Any) -> Any:
    """Return rows of a table, as an array of numpy or JAX like the index."""
    return table[index] if isinstance(index, np.ndarray) else jnp.asarray(table)[index]


def flat(x: Any, axes: int, *shape: int) -> Any:
    """Return an array whose last ``axes`` have another shape."""
    return x.reshape(*x.shape[: x.ndim - axes], *shape)


def joined(*runs: Any) -> Any:
    """Return arrays of numpy or JAX joined along the axis before the last."""
    arrays = np if isinstance(runs[0], np.ndarray) else jnp
    return arrays.concatenate(runs, axis=-2)
