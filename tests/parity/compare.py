"""Our forward pass beside the references' logits and greedy tokens: measures, and says what misses the bars.

    python -m tests.parity.compare FOLDER

FOLDER holds ``transformers/<architecture>-<seed>`` as ``reference_hf.py`` writes them, and
``gemma/<architecture>-<seed>`` as ``reference_gemma.py`` does. Prints a table, also into ``FOLDER/table.md``.
The exit status is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)
from langchain_gemma_jax.models.loading.from_gemma import from_gemma
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.seams.params import Params
from tests.parity.architectures import GEMMA_LIBRARY, MULTIMODAL, SHRUNK
from tests.parity.tiny import FLOAT32, OPTIMIZED, Program, Runner

BAR = 2e-4  # of the logits' spread: their standard deviation
CAPACITY, LENGTHS = 240, (1, 4, 48, 104, 168)  # slots, and what chunks are padded to: few programs
CHUNKS = (4, 1, 17, 3, 40, 2, 48, 1, 20)  # as they come in turn: short, long, and longer than a ring
PADDING = (7, 80, 3, 11)  # other ids than the usual padding, which is zeros

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Reference:
    """A reference's results for one model: rows of a prompt and the tokens that greedy decoding adds."""

    name: str
    tokens: Ints  # [row, token], padded
    prompts: Ints  # [row]: the length of each prompt
    ends: Ints  # [row]: with what was added
    logits: Floats  # [row, token, vocab]

    @property
    def spread(self) -> float:
        return float(np.std(np.concatenate([row[:end] for row, end in zip(self.logits, self.ends, strict=True)])))


@dataclass
class Result:
    """The worst of one architecture. Differences are relative to the spread of the reference's logits."""

    architecture: str
    reference: str
    wanted_seeds: int
    seeds: int = 0
    logits: float = 0.0
    greedy: int = 0
    greedy_of: int = 0
    cached: float = 0.0
    chunked: float = 0.0
    padded: float = 0.0
    remarks: list[str] = field(default_factory=list)

    def see(self, name: str, *differences: float) -> None:
        """Keep the largest."""
        setattr(self, name, max(getattr(self, name), *differences))

    @property
    def passed(self) -> bool:
        # Written so that a NaN does not pass.
        return (
            self.seeds == self.wanted_seeds > 0
            and self.greedy == self.greedy_of
            and all(x <= BAR for x in (self.logits, self.cached, self.chunked, self.padded))
        )


def compare(
    result: Result, config: ModelConfig, params: Params, reference: Reference, program: Program = OPTIMIZED
) -> None:
    """Run one model in every way that must not matter, and enter the differences."""
    rows = range(len(reference.tokens))
    texts = [reference.tokens[row, : reference.ends[row]] for row in rows]
    spread = reference.spread

    def runner() -> Runner:
        return Runner(config, params, rows=len(rows), capacity=CAPACITY, lengths=LENGTHS, program=program)

    whole = runner().read(texts)
    repadded = runner().read(texts, pad=PADDING)
    chunked = _in_chunks(runner(), texts)
    prompts, steps = _token_by_token(runner(), texts, reference.prompts)

    result.seeds += 1
    for row, prompt in zip(rows, reference.prompts, strict=True):
        ours, theirs = whole[row], reference.logits[row, : reference.ends[row]]
        result.see("logits", _apart(ours, theirs, spread), _apart(steps[row], theirs[prompt:], spread))
        result.see("cached", _apart(steps[row], ours[prompt:], spread))
        result.see("chunked", _apart(chunked[row], ours, spread))
        result.see("padded", _apart(repadded[row], ours, spread), _apart(prompts[row], ours[:prompt], spread))
        before = np.concatenate([prompts[row][-1:], steps[row]])
        for at, scores in zip(range(prompt, len(ours)), before, strict=False):
            _enter_greedy(result, reference, row, at, scores, spread)


def _enter_greedy(result: Result, reference: Reference, row: int, at: int, ours: Floats, spread: float) -> None:
    """Enter whether ours prefers the token that the reference took, after the same tokens."""
    token, preferred = int(reference.tokens[row, at]), int(ours.argmax())
    result.greedy += token == preferred
    result.greedy_of += 1
    if token != preferred:
        theirs = reference.logits[row, at - 1]
        gap = float(theirs[token] - theirs[preferred]) / spread
        verdict = "a tie" if gap <= 2 * BAR else "no tie"
        result.remarks.append(
            f"{reference.name}, row {row}, token {at}: the reference takes {token}, we take {preferred}; "
            f"in the reference they are {gap:.1e} of the spread apart: {verdict}."
        )


def _apart(ours: Floats, theirs: Floats, spread: float) -> float:
    difference = float(np.max(np.abs(ours - theirs))) / spread
    return np.inf if np.isnan(difference) else difference


def _in_chunks(runner: Runner, texts: Sequence[Ints]) -> list[Floats]:
    """All logits, read chunk by chunk. A row that has ended reads chunks of nothing."""
    found: list[list[Floats]] = [[] for _ in texts]
    for size in itertools.cycle(CHUNKS):
        if all(at == len(text) for at, text in zip(runner.start, texts, strict=True)):
            return [np.concatenate(row) for row in found]
        scores = runner.read([text[at : at + size] for at, text in zip(runner.start, texts, strict=True)])
        for row, one in zip(found, scores, strict=True):
            row.append(one)
    raise AssertionError


def _token_by_token(runner: Runner, texts: Sequence[Ints], prompts: Ints) -> tuple[list[Floats], list[Floats]]:
    """The logits of the prompts, read at once, and of what follows, a token at a time, each row at its own place."""
    of_prompts = runner.read([text[:prompt] for text, prompt in zip(texts, prompts, strict=True)])
    steps = [
        runner.read([text[at : at + 1] for at, text in zip(runner.start, texts, strict=True)])
        for _ in range(len(texts[0]) - int(prompts[0]))
    ]
    return of_prompts, [np.concatenate([step[row] for step in steps]) for row in range(len(texts))]


# The folders.


def read_transformers(folder: Path) -> tuple[ModelConfig, Params, Reference]:
    """A checkpoint as transformers saved it, read as any checkpoint is."""
    config, source, naming = open_folder(folder)
    with source:
        params = place(source, naming, config, "float32", FLOAT32.layout, jax.local_devices()[0])
    with np.load(folder / "reference.npz") as found:
        prompts = found["lengths"]
        ends = prompts + found["tokens"].shape[1] - prompts.max()
        return config, params, Reference(folder.name, found["tokens"], prompts, ends, found["logits"])


class Dumped:
    """In the place of the official library's module, whose environment is another one."""


def read_gemma(folder: Path) -> tuple[ModelConfig, Params, Reference]:
    """A tree of the official library, taken over as its users would have it."""
    config = config_from_dict(json.loads((folder / "config.json").read_text()))
    with np.load(folder / "tree.npz") as found:
        tree = nested({name: found[name] for name in found.files})
    params = from_gemma(Dumped(), tree, config=config, dtype="float32", recipe=FLOAT32).params
    with np.load(folder / "reference.npz") as found:
        prompt, added = found["tokens"], found["continuation"]
        tokens = np.concatenate([prompt, added])[None].astype(np.int64)
        ends = np.array([tokens.shape[1]])
        return config, params, Reference(folder.name, tokens, np.array([len(prompt)]), ends, found["logits"][None])


def config_from_dict(raw: Mapping[str, object]) -> ModelConfig:
    """The inverse of ``dataclasses.asdict``, through JSON."""
    layers = tuple(LayerConfig(**{**layer, "rope": Rope(**layer["rope"])}) for layer in raw["layers"])
    moe = raw["moe"] and MoeConfig(**raw["moe"])
    ple = raw["per_layer_input"] and PerLayerInputConfig(**raw["per_layer_input"])
    return ModelConfig(
        **{**raw, "layers": layers, "moe": moe, "per_layer_input": ple, "eos_ids": tuple(raw["eos_ids"])}
    )


def nested(flat: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, object]:
    """``{"a/b": x}`` as ``{"a": {"b": x}}``."""
    tree: dict[str, object] = {}
    for path, array in flat.items():
        *folders, name = path.split("/")
        inner = tree
        for part in folders:
            inner = inner.setdefault(part, {})
        inner[name] = array
    return tree


READERS = {"transformers": read_transformers, "gemma": read_gemma}
EXPECTED = {"transformers": (*SHRUNK, *MULTIMODAL), "gemma": GEMMA_LIBRARY}


def measure(folder: Path, reference: str, seeds: int) -> Iterator[Result]:
    """A result an architecture, over its first ``seeds`` models."""
    for architecture in EXPECTED[reference]:
        result = Result(architecture, reference, wanted_seeds=seeds)
        for seed in range(seeds):
            model = folder / reference / f"{architecture}-{seed}"
            if (model / "reference.npz").exists():
                compare(result, *READERS[reference](model))
            else:
                result.remarks.append(f"{model}: not there. Run the reference.")
        jax.clear_caches()
        yield result


HEAD = ("architecture", "reference", "seeds", "logits", "greedy tokens", "cached = full", "chunked = whole", "padding")


def line(result: Result) -> tuple[str, ...]:
    """The cells of a row of the table."""
    differences = (f"{x:.1e}" for x in (result.logits, result.cached, result.chunked, result.padded))
    first, *others = differences
    greedy = f"{result.greedy}/{result.greedy_of}"
    return (result.architecture, result.reference, str(result.seeds), first, greedy, *others)


def table(results: Iterable[Result]) -> str:
    """All of it in Markdown."""
    rows = [HEAD, *map(line, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]])


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="Compare our forward pass with what the references wrote.")
    parser.add_argument("folder", type=Path, help="where the references wrote")
    parser.add_argument("--seeds", type=int, default=10, help="models of each architecture (10)")
    parser.add_argument("--reference", choices=READERS, action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    results = []
    for reference in options.reference or READERS:
        for result in measure(options.folder, reference, options.seeds):
            results.append(result)
            print(*line(result), sep="  ", flush=True)  # noqa: T201  progress
    print("", table(results), *(remark for result in results for remark in result.remarks), "", sep="\n")  # noqa: T201
    (options.folder / "table.md").write_text(table(results) + "\n")
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"FAILED: {result.architecture} against {result.reference}", file=sys.stderr)  # noqa: T201
    if failed or not results:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
