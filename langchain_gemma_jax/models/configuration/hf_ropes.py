"""The rotary position embeddings of a ``config.json``."""

from __future__ import annotations

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import GLOBAL, LOCAL, Fields, Raw
from langchain_gemma_jax.models.configuration.model_config import Rope
from langchain_gemma_jax.models.configuration.strict_json import short

LOCAL_THETA, GLOBAL_THETA = 10_000.0, 1_000_000.0


def one_rope(f: Fields) -> Rope:
    """Read the rope of Gemma 1 and 2: one base for all layers."""
    parameters = f.table("rope_parameters")
    f.refuse("rope_scaling", "this generation was trained without rope scaling")
    return _rope({"rope_theta": f.get("rope_theta", LOCAL_THETA), **parameters}, f.location)


def two_ropes(f: Fields, *, proportional_by_default: bool = False) -> dict[str, Rope]:
    """Read the ropes of Gemma 3 and 4: local and global layers rotate at different speeds."""
    local: dict[str, object] = {"rope_theta": f.get("rope_local_base_freq", LOCAL_THETA)}
    everywhere: dict[str, object] = {"rope_theta": f.get("rope_theta", GLOBAL_THETA), **f.table("rope_scaling")}
    parameters = f.table("rope_parameters")
    if proportional_by_default and not parameters:
        everywhere |= {"rope_type": "proportional", "partial_rotary_factor": 0.25}
    newer = Fields(parameters, {}, f.location)
    return {
        LOCAL: _rope({**local, **newer.table(LOCAL)}, f.location),
        GLOBAL: _rope({**everywhere, **newer.table(GLOBAL)}, f.location),
    }


def _rope(parameters: Raw, location: str) -> Rope:
    f = Fields(parameters, {}, f"{location} (rope)")
    kind = f.get("rope_type", f.get("type", "default"))
    theta, share = f.positive("rope_theta", 0.0), f.positive("partial_rotary_factor", 1.0)
    if share > 1:
        raise f.error("partial_rotary_factor", "at most 1", share)
    if kind == "default":
        return Rope(theta)
    if kind == "linear":
        f.refuse("partial_rotary_factor", "linear scaling turns whole heads", 1)
        return Rope(theta, position_scale=f.positive("factor", 0.0))
    if kind == "proportional":
        return Rope(theta, position_scale=f.positive("factor", 1.0), rotated_share=share)
    raise UnsupportedModelError(
        f"{f.location}: expected rope_type default, linear or proportional, found {short(kind)}."
    )
