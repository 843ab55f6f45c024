"""Measurements of a run as plain values: what the report is made from, and what ``--json`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

from benchmarks.running.serve import Answer, Json
from benchmarks.work.workload import DTYPES

OURS, TRANSFORMERS, LLAMA_CPP, OFFICIAL = "ours", "transformers", "llama.cpp", "official gemma"
LLAMA_AMX, IK, MISTRAL_RS = "llama.cpp with AMX", "ik_llama.cpp", "mistral.rs"
OPENVINO, LITERT, VLLM = "OpenVINO GenAI", "LiteRT-LM", "vLLM"
ON_FILES = (LLAMA_CPP, LLAMA_AMX, IK, MISTRAL_RS, OPENVINO, LITERT, VLLM)  # rivals that are given a file
BANDWIDTH = "bandwidth"


@dataclass
class Figures:
    """One engine's rounds at one dtype."""

    facts: Answer = field(default_factory=dict)
    rounds: list[Answer] = field(default_factory=list)
    problem: str | None = None  # why there are no rounds, or no more of them

    @property
    def measured(self) -> bool:
        return bool(self.rounds) and self.problem is None

    def prefill(self, length: int) -> list[float]:
        """Tokens read a second, for each read of a prompt of ``length``."""
        reads = [cast("Mapping[str, list[float]]", each["prefill"]).get(str(length), []) for each in self.rounds]
        return [length / seconds for some in reads for seconds in some]

    def decode(self) -> list[float]:
        """Tokens decoded a second, for each round."""
        return [1 / cast("float", each["decode"]) for each in self.rounds]

    def tokens(self) -> list[int]:
        """Return the tokens decoded in the first round."""
        return list(cast("Sequence[int]", self.rounds[0]["tokens"]))

    def bandwidth(self) -> list[float]:
        """Bytes read a second, for each round: of the ways to read, the fastest one."""
        return [max(cast("Mapping[str, float]", each).values()) for each in self.rounds]

    def compile_seconds(self) -> float:
        """The shortest of the rounds, all programs together."""
        return min(sum(cast("Mapping[str, float]", each).values()) for each in self.rounds)


@dataclass
class Run:
    """Everything that one run of the benchmark found."""

    machine: Mapping[str, Json]
    settings: Mapping[str, Json]
    engines: dict[str, dict[str, Figures]] = field(default_factory=dict)  # by dtype, by name
    compilations: dict[str, dict[str, Figures]] = field(default_factory=dict)  # by model, by dtype
    seconds: float = 0.0
    others: float | None = None  # cores that others kept busy meanwhile

    def of(self, name: str, dtype: str) -> Figures:
        return self.engines.get(dtype, {}).get(name, Figures(problem="not run"))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The kinds of weights that were to be measured: all of them, where nothing was."""
        return tuple(dtype for dtype in DTYPES if dtype in self.engines) or DTYPES

    def compilation(self, model: str, dtype: str) -> Figures:
        return self.compilations.get(model, {}).get(dtype, Figures(problem="not run"))

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def agreeing(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Count the tokens that are the same, up to the first that is not."""
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return index
    return min(len(ours), len(theirs))
