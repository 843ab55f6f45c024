"""What the names of GGUF files say: which are shards of one model, of which quantisation, and which are text models."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from langchain_gemma_jax.errors import CheckpointNotFoundError

SUFFIX = ".gguf"
PREFERRED = "Q4_K_M"
MOST_SHARDS = 1_000
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_KNOWN = re.compile(r"[-._/](q\d(_[0-9k])?(_[0-9a-z]+)?|f16|bf16|f32)(?=[-._/])", re.IGNORECASE)


def shards_of(path: Path) -> list[Path]:
    """Return the files of a model, by the name of one: itself, if it is not one of several."""
    match = _SHARD.fullmatch(path.name)
    count = int(match["count"]) if match else 1
    if match is None or not 1 < count <= MOST_SHARDS or not 0 < int(match["number"]) <= count:
        return [path]
    return [path.with_name(f"{match['stem']}-{number:05}-of-{count:05}{SUFFIX}") for number in range(1, count + 1)]


def text_models(names: Collection[str]) -> list[str]:
    """The first files of the models among these names."""
    found = [name for name in sorted(names) if name.lower().endswith(SUFFIX) and "mmproj" not in name.lower()]
    return [name for name in found if shards_of(Path(name))[0] == Path(name)]


def choose(names: Collection[str], wanted: str | None, where: str) -> list[str]:
    """The files of the model that is meant: with this file name or of this quantisation, or the only or usual one.

    Raises:
        CheckpointNotFoundError: there is none such, or it is not clear which one is meant.
    """
    models = text_models(names)
    if wanted is None:
        found = models if len(models) == 1 else [name for name in models if _is_of(name, PREFERRED)]
        expected = "one GGUF file, or a choice of one of several"
    else:
        found = [name for name in models if name == wanted or PurePosixPath(name).name == wanted]
        found = found or [name for name in models if _is_of(name, wanted)]
        expected = f"a GGUF file named {wanted}, or of that quantisation"
    if len(found) != 1:
        shown = ", ".join(models[:12]) or "none"
        advice = f'Name one behind a colon: "{where}:{_quantisation(models)}".' if models else ""
        raise CheckpointNotFoundError(where, expected, shown, advice)
    return [path.as_posix() for path in shards_of(Path(found[0]))]


def _is_of(name: str, quantisation: str) -> bool:
    return re.search(rf"[-._/]{re.escape(quantisation)}[-._/]", f"/{name}", re.IGNORECASE) is not None


def _quantisation(models: Sequence[str]) -> str:
    match = _KNOWN.search(models[0])
    return match[1] if match else PurePosixPath(models[0]).name
