"""The engine's work in numbers that no other program of the machine can change, and a comparison with committed ones.

A clock on a shared machine cannot tell a loss of 5 % from noise; a count of operations, kernel calls, buffers, copies
and bytes can. The numbers follow from the code and from JAX's release, so each release has its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import jax

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.packed.choose_forms import BY_KERNELS
from langchain_gemma_jax.models.packed.quantize import Quantized
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.tiny import settle
from tests.xla_flags import as_users

COMMITTED = Path(__file__).with_suffix(".json")
SLACK = 0.03  # of a committed value; a count of less than 34 has to stay as it is
REFRESH = "python scripts/work_counts.py"

_FULL = published("gemma-3-270m")
_CONFIG = _FULL.replace(vocab_size=512, width=64, layers=_FULL.layers[4:6])  # a local and a global layer
_PLAIN = default_recipe("float32", "cpu")
CAPACITY = 256
RECIPES = {
    "dense by XLA": _PLAIN,
    "int8 by kernels": replace(
        _PLAIN,
        attention=AttentionForm.KERNEL,
        between=BetweenForm.KERNEL,
        storage=Quantized(8, replace(BY_KERNELS, activations="int8")),
    ),
}
PROGRAMS: Mapping[str, ProgramKey] = {
    "a chunk of 16": ("read", 16, CAPACITY),
    "a step of 1": ("step", 1, CAPACITY),
    "a step of 8": ("step", 8, CAPACITY),
    "8 picks": ("pick", 8),
}

Counts = dict[str, float]

_OPERATION = re.compile(r"= \"?stablehlo\.\w+")
_KERNEL_CALL = re.compile(r"custom_call @gemma_jax")
_INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?[\w.-]+ = .*? ([a-z][\w-]*)\(", re.MULTILINE)
_ADDRESSES = {"parameter", "get-tuple-element", "tuple", "bitcast", "constant"}  # instructions that run nothing


@dataclass(frozen=True)
class Change:
    """A count that is no longer what was committed."""

    name: str
    committed: float | None
    found: float | None

    @property
    def worse(self) -> bool:
        """True if there is more work than before."""
        return self.committed is not None and self.found is not None and self.found > self.committed

    def __str__(self) -> str:
        if self.committed is None or self.found is None:
            return f"{self.name}: committed {self.committed}, found {self.found}"
        share = f"{self.found / self.committed - 1:+.1%}" if self.committed else "from none"
        return f"{self.name}: expected {self.committed:g} within {SLACK:.0%}, found {self.found:g} ({share})"


def traced(recipe: str, program: str) -> Counts:
    """Count what one dispatch of a program asks XLA for. Nothing is compiled."""
    programs, signatures = _of(recipe)
    key = PROGRAMS[program]
    text = lower(programs, signatures, key).as_text()
    return {
        "operations": len(_OPERATION.findall(text)),
        "kernel calls": len(_KERNEL_CALL.findall(text)),
        "buffers given": len(jax.tree.leaves(signatures.arguments(key))),
    }


def compiled(recipe: str, program: str) -> Counts:
    """Count what users' XLA makes of a program: what it runs one after the other, and the bytes that these touch."""
    programs, signatures = _of(recipe)
    made = lower(programs, signatures, PROGRAMS[program]).compile(as_users())
    entry = made.as_text().partition("\nENTRY ")[2].partition("\n}")[0]
    analysis = made.cost_analysis()
    (of_all,) = analysis if isinstance(analysis, list) else (analysis,)
    return {
        "instructions run": sum(kind not in _ADDRESSES for kind in _INSTRUCTION.findall(entry)),
        "bytes accessed": of_all["bytes accessed"],
        "temporary bytes": made.memory_analysis().temp_size_in_bytes,
    }


def conversation(engine_of: Callable[..., Engine], model: Model) -> Counts:
    """Count what three turns of a conversation cost, and each further token of an answer."""
    engine = engine_of()
    served = engine.serve(model)
    context: list[int] = []
    for turn, new in enumerate((40, 9, 3)):
        context += [4 + (7 * turn + 3 * place) % 256 for place in range(new)]
        context += engine.submit(served, context, _greedy(12)).result().ids
    settle(engine)
    report = engine.report()
    return {
        "programs": report.programs,
        "dispatches": report.dispatches,
        "steps": report.steps,
        "tokens read": report.prefilled_tokens,
        "copies to the device": report.device_copies,
        "bytes to the device": report.bytes_to_device,
        "bytes to the host": report.bytes_to_host,
        "bytes to the device, 32 further tokens": _step_bytes(engine_of, model, 40) - _step_bytes(engine_of, model, 8),
    }


def changes(committed: Mapping[str, float], found: Mapping[str, float]) -> list[Change]:
    """Compare counts by name. A smaller one is told too: unless it is committed, the gain can be lost unseen."""
    return [
        Change(name, committed.get(name), found.get(name))
        for name in sorted({*committed, *found})
        if name not in committed or name not in found or abs(found[name] - committed[name]) > SLACK * committed[name]
    ]


def explained(found: list[Change]) -> str:
    """Say what changed and what to do."""
    lines = "\n".join(f"  {each}" for each in found)
    advice = (
        "This costs every user: find what added the work. If it is worth its price, say why in the commit, and run"
        if any(each.worse for each in found)
        else "To keep this, run"
    )
    return f"The engine's work changed (JAX {jax.__version__}):\n{lines}\n{advice} {REFRESH}"


def committed(kind: str) -> Mapping[str, Mapping[str, float]] | None:
    """Return the committed counts of one kind for this JAX, None if nobody counted with it."""
    known: Mapping[str, Mapping[str, Mapping[str, float]]] | None = _read().get(jax.__version__)
    return None if known is None else known.get(kind, {})


def commit(kind: str, name: str, counts: Counts) -> None:
    """Write counts into the committed file, for this JAX."""
    everything = _read()
    everything.setdefault(jax.__version__, {}).setdefault(kind, {})[name] = counts
    COMMITTED.write_text(json.dumps(everything, indent=2, sort_keys=True) + "\n")


def _read() -> dict[str, dict[str, dict[str, Counts]]]:
    return json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}


def _of(recipe: str) -> tuple[Programs, Signatures]:
    here = SingleDevice(jax.local_devices()[0])
    shape = Shape(
        Gemma(_CONFIG), RECIPES[recipe], _CONFIG.vocab_size, CAPACITY, PageCounts(24, 24), local_entries=9, loop_steps=1
    )
    return Programs(shape, here), Signatures(shape, here)


def _step_bytes(engine_of: Callable[..., Engine], model: Model, tokens: int) -> int:
    engine = engine_of()
    engine.submit(engine.serve(model), range(4, 24), _greedy(tokens)).result()
    settle(engine)
    return engine.report().step_bytes_to_device


def _greedy(tokens: int) -> Sampling:
    return Sampling(max_tokens=tokens, temperature=0.0, ignore_eos=True)
