"""A process with eight simulated devices, on which tokens are picked from scores that each has a share of.

    python tests/engine/device/mesh_picks.py '{"counts": [2, 8], "vocabulary": 320}'

Prints a line of JSON: what is picked so and on one device, and what the devices tell each other.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from math import prod

import jax
import numpy as np

from langchain_gemma_jax.engine.device.knobs import OF_THE_BEST, OF_THE_BIASED, OF_THE_TOKEN, knobs
from langchain_gemma_jax.engine.device.sampling import pick
from langchain_gemma_jax.models.gemma.divided_gemma import MeshScores
from langchain_gemma_jax.models.mesh.device_mesh import WHOLE, DeviceMesh

GATHERED = re.compile(r"= \(?\w+\[([\d,]*)\]\S* all-(?:gather|reduce)\(")
WISHES = [
    {"temperature": 0.0},
    {"temperature": 0.0, "logprobs": OF_THE_BEST},
    {"temperature": 0.7},
    {"temperature": 3.0, "logprobs": OF_THE_TOKEN},
    {"top_k": 1},
    {"top_k": 40},
    {"top_k": 200, "temperature": 4.0},  # more than the few best: found among all
    {"top_p": 0.5},
    {"top_p": 0.99, "temperature": 5.0},
    {"min_p": 0.1},
    {"top_k": 30, "top_p": 0.8, "min_p": 0.02, "temperature": 1.5, "logprobs": OF_THE_BEST},
    {"repetition": 1.6, "presence": 0.5, "frequency": 0.3, "temperature": 0.0},
    {"repetition": 0.6, "frequency": -0.8, "temperature": 1.0},
    {"logit_bias": {3: 4.0, 50: -100.0, 199: 2.0}, "logprobs": OF_THE_BIASED, "temperature": 0.0},
    {"masked": True, "temperature": 0.0},
    {"masked": True, "temperature": 1.0, "top_k": 5, "logprobs": OF_THE_BEST},
]


def main(counts: Sequence[int], vocabulary: int) -> dict[str, object]:
    """Pick in each way from random scores, from ties, and from scores that hold NaN or nothing finite."""
    numbers, rows = np.random.default_rng(7), len(WISHES)
    valid = vocabulary - 9
    plain = [numbers.normal(size=(rows, vocabulary)) * 2 for _ in range(6)]
    ties = np.round(numbers.normal(size=(rows, vocabulary)))
    broken = numbers.normal(size=(rows, vocabulary))
    broken[:, vocabulary // 2] = np.nan
    broken[::2, 5] = np.inf
    nothing = np.full((rows, vocabulary), -np.inf)
    allowed = np.zeros((rows, -(-vocabulary // 32)), np.uint32)
    for row, ids in enumerate(numbers.integers(0, valid, (rows, 7))):
        for token in ids:
            allowed[row, token // 32] |= np.uint32(1) << np.uint32(token % 32)
    history = numbers.integers(0, vocabulary, (rows, 24)).astype(np.int32)
    positions = numbers.integers(4, 24, rows).astype(np.int32)
    found: dict[str, object] = {}
    alone = jax.jit(partial(pick, valid_vocab=valid))
    for count in counts:
        where = DeviceMesh(tuple(jax.devices()[:count]))
        share = MeshScores(where, count)
        divided = jax.sharding.PartitionSpec(None, where.names(count))
        shared = jax.jit(
            jax.shard_map(
                lambda *given, share=share: pick(*given, valid_vocab=valid, share=share),
                mesh=where.mesh,
                in_specs=(divided, *(WHOLE,) * 4),
                out_specs=WHOLE,
                check_vma=False,
            )
        )
        wrong, apart, tops, picks = 0, 0.0, 0, 0
        for seed, scores in enumerate([*plain, ties, broken, nothing]):
            rules = [knobs(**{"prompt_length": 3, "seed": seed, **wish}) for wish in WISHES]
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *rules)
            given = (scores.astype(np.float32), stacked, history, positions, allowed)
            one, several = jax.device_get(alone(*given)), jax.device_get(shared(*given))
            picks += rows
            wrong += int((one.tokens != several.tokens).sum())
            finite = np.isfinite(one.top_logprobs) & np.isfinite(several.top_logprobs)
            tops += int(((one.top_ids != several.top_ids) & finite).any(1).sum())  # others come with any id
            apart = max(apart, float(np.abs(np.where(finite, one.top_logprobs - several.top_logprobs, 0)).max()))
            same = np.isfinite(one.logprobs) == np.isfinite(several.logprobs)
            apart = max(apart, float(np.abs(np.nan_to_num(one.logprobs - several.logprobs)).max()))
            tops += int((~same).sum())
        moved = [
            prod(map(int, shape.split(","))) if shape else 1
            for shape in GATHERED.findall(shared.lower(*given).compile().as_text())
        ]
        found[str(count)] = {"picks": picks, "wrong": wrong, "tops": tops, "apart": apart, "moved": max(moved)}
    return found


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))  # noqa: T201
