"""Seconds and bytes of one conversation that grows to 131,072 tokens: a real 270M, beside llama.cpp.

    python benchmarks/memory/long_contexts.py                             # 4,096, 32,768 and 131,072 tokens: an hour
    python benchmarks/memory/long_contexts.py --lengths 4096 32768        # some minutes
    python benchmarks/memory/long_contexts.py --rivals none --write-docs  # this package alone, into docs/choosing.md

Needs the file that ``scripts/real`` puts together. The model was made for 32,768 tokens; the file that is measured says
some more than 131,072, which changes what is computed nowhere. Each engine reads the conversation on from where it was,
and decodes a few tokens at each length. Engines run one after the other, each alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.files import real
from benchmarks.running.command import positive, some_of
from benchmarks.running.contenders import ROOT, Contender, in_turn, rivals_of
from benchmarks.running.figures import LLAMA_AMX, LLAMA_CPP, Figures
from benchmarks.running.machine import Others, cores, machine
from benchmarks.running.page import Block, replace_block
from benchmarks.running.report import bullets, sections, table
from benchmarks.running.serve import Job
from benchmarks.work.context_lengths import ROOM

PAGE = ROOT / "docs" / "choosing.md"
LENGTHS = (4096, 32768, 131072)
BLOCK = Block("lengths", "benchmarks/memory/long_contexts.py")
PATIENT: dict[str, Any] = {"start_seconds": 1200.0, "round_seconds": 4 * 3600.0}
OURS, ROUNDED = "this package", 'this package, `cache_dtype="int8"`'
CONTENDERS = {  # with the dtype of keys and values
    OURS: (Contender(OURS, "benchmarks.memory.ours_lengths", **PATIENT), "float16"),
    ROUNDED: (Contender(ROUNDED, "benchmarks.memory.ours_lengths", **PATIENT), "int8"),
    LLAMA_CPP: (Contender(LLAMA_CPP, "benchmarks.rivals.llama_lengths", "llama", **PATIENT), "float16"),
    LLAMA_AMX: (Contender(LLAMA_AMX, "benchmarks.rivals.llama_lengths", "llama-amx", **PATIENT), "float16"),
    f"{LLAMA_AMX}, Q8_0 cache": (
        Contender(f"{LLAMA_AMX}, Q8_0 cache", "benchmarks.rivals.llama_lengths", "llama-amx", **PATIENT),
        "int8",
    ),
}


def long_file() -> Path:
    """Return the real 270M in eight bits, whose file says that it takes the longest length and some. Made once."""
    import gguf

    from benchmarks.files.real_files import copy_fields, finish, q8_0_file

    path = real.FOLDER / "long" / "gemma-3-270m-long-Q8_0.gguf"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    reader = gguf.GGUFReader(q8_0_file())
    writer = gguf.GGUFWriter(unfinished, "gemma3")
    copy_fields(reader, writer, {"gemma3.context_length": max(LENGTHS) + ROOM})
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    unfinished.rename(path)
    return path


def markdown(found: Mapping[str, Figures], lengths: Sequence[int]) -> str:
    """Return the table, a row for each length and engine."""
    header = [
        "tokens",
        "engine",
        "read in",
        "a second",
        "a token after them",
        "keys and values",
        "growth of the process",
    ]
    body = []
    for length in lengths:
        for name, figures in found.items():
            if not figures.measured:
                continue
            seen = cast("Mapping[str, float]", figures.rounds[-1][str(length)])
            body.append(
                [
                    f"{length:,}",
                    name,
                    f"{seen['read']:,.1f} s",
                    f"{length / seen['read']:,.0f} tokens",
                    f"{seen['token'] * 1e3:.1f} ms",
                    f"{seen['held'] / 1e6:,.1f} MB",
                    f"{seen['resident'] / 1e6:,.0f} MB",
                ]
            )
    problems = [f"{name}: {figures.problem}" for name, figures in found.items() if figures.problem]
    versions = [f"{name}: {figures.facts.get('version')}" for name, figures in found.items() if figures.measured]
    back = (
        "The last column is the growth of the process since before the first token. This package meanwhile frees what "
        "the compiler used, so its growth is less than its keys and values."
    )
    facts = [f"{machine()['processor']}, {machine()['cores']} cores", *versions, back, *problems]
    return sections(table(header, body), bullets(facts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if this package could not be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    rivals = rivals_of([contender for contender, _ in CONTENDERS.values()])
    parser.add_argument("--lengths", type=positive, nargs="+", default=LENGTHS, help="in tokens, ascending")
    parser.add_argument("--rivals", type=some_of(rivals), default=tuple(rivals), help="environments, or none")
    parser.add_argument("--threads", type=positive, default=cores())
    parser.add_argument("--write-docs", action="store_true", help=f"renew the table in {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if not (real.FOLDER / real.FILE).exists():
        print("The real weights are not here: scripts/real --fetch puts them there.", file=sys.stderr)
        return 1
    name, prompt, others = str(long_file().relative_to(real.FOLDER)), real.made_files(), Others()
    job = Job("float16", options.threads, str(real.FOLDER), name, str(prompt), True, lengths=tuple(options.lengths))
    found: dict[str, Figures] = {}
    for each, (contender, dtype) in CONTENDERS.items():
        if contender.environment in {None, *options.rivals}:
            found |= {each: next(iter(in_turn([contender], replace(job, dtype=dtype), 1).values()))}
    text = markdown(found, options.lengths)
    print(text, f"\nOthers used {others.cores_used() or 0:.2f} cores meanwhile.")
    if options.write_docs:
        PAGE.write_text(replace_block(PAGE.read_text(), text, BLOCK))
    return 0 if all(found[each].measured for each in (OURS, ROUNDED)) else 1


if __name__ == "__main__":
    sys.exit(main())
