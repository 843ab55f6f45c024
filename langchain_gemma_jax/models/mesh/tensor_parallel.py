"""The axis along which each matrix of a transformers model is divided among devices: by the model's plan, or by shape.

Most models of transformers have a plan for tensor parallelism, which names the matrices whose outputs are divided and
those whose inputs are. For a matrix without a plan, its shape decides. XLA divides the work by the sharding of the
arrays, so a rule that fits a model badly costs time, but changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Division, Section

_OUTPUTS, _INPUTS = ("colwise", "packed_colwise"), ("rowwise",)  # prefixes of the styles in plans
_BACK = ("o_proj", "out_proj", "down_proj", "dense", "c_proj", "wo", "fc2")  # square matrices with divided inputs


@dataclass(frozen=True)
class DividedAxis:
    """The divided axis of one array."""

    name: str
    axis: int
    size: int  # numbers along the axis that stay together: a head


def cuts_of(
    tensors: Iterable[tuple[str, tuple[int, ...]]], plan: Mapping[str, str], width: int, head_dim: int
) -> tuple[DividedAxis, ...]:
    """Return the divided axes of a model's arrays. Arrays without one are whole on each device.

    Args:
        tensors: the name and the shape of each array.
        plan: the model's own plan: patterns of names, and styles.
        width: of the hidden states.
        head_dim: the width of a head.
    """
    divided_axes = []
    for name, shape in tensors:
        owner, _, leaf = name.rpartition(".")
        if len(shape) < 2 or not (leaf == "weight" or len(shape) == 3):
            continue
        known_as = owner if leaf == "weight" else name
        style = next((style for pattern, style in plan.items() if fnmatchcase(known_as, pattern)), None)
        axis = _by_plan(style, shape) if style is not None else _by_shape(owner, leaf, shape, width)
        if axis is not None:
            by_heads = "attn" in name and shape[axis] % head_dim == 0
            divided_axes.append(DividedAxis(name, axis, head_dim if by_heads else 1))
    return tuple(divided_axes)


def divided(spec: ArraySpec, cut: DividedAxis | None) -> ArraySpec:
    """Return an array's spec with the section that a placement divides it by."""
    if cut is None:
        return spec
    section = Section(cut.name.rpartition(".")[0], spec.shape[cut.axis] // cut.size, cut.size)
    return ArraySpec(spec.shape, spec.dtype, axes=spec.axes, along=cut.axis, sections=(section,))


def why_not_among(devices: int, heads: int) -> str | None:
    """Return why a model with ``heads`` query heads cannot be divided among ``devices`` devices. None: it can."""
    if devices > 1 and Division(devices).ways(Section("query heads", heads)) == 1:
        return f"its {heads} query heads do not divide among {devices} devices, and its attention would be whole"
    return None


def _by_plan(style: str, shape: tuple[int, ...]) -> int | None:
    if style.startswith(_OUTPUTS) or style.startswith("embedding"):
        return len(shape) - 2
    return len(shape) - 1 if style.startswith(_INPUTS) else None


def _by_shape(owner: str, leaf: str, shape: tuple[int, ...], width: int) -> int | None:
    """Return the axis of a matrix ``[..., outputs, inputs]`` that is not the model's width; of a table, the rows."""
    if len(shape) == 3:
        return 2 if owner.endswith("experts") and "down" in leaf else 1 if owner.endswith("experts") else None
    outputs, inputs = shape
    if outputs == inputs:
        return 1 if owner.rpartition(".")[2] in _BACK else 0
    if inputs == width:
        return 0
    return 1 if outputs == width else None
