"""The meaning of GGUF files' names: shards of one model, quantizations, encoders."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from langchain_gemma_jax.errors import CheckpointNotFoundError

SUFFIX = ".gguf"
PREFERRED = "Q4_K_M"
MOST_SHARDS = 1_000
_QUANTIZED = re.compile(
    r"[it]?q\d\w*|(mx|nv)fp4|ud|[kmsl]|x+[sl]|\d"
)  # words of a name that say how it is stored, or a number
_ENCODERS, _PRECISIONS = "mmproj", ("bf16", "f16", "f32", "q8_0")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_KNOWN = re.compile(r"[-._/]([it]?q\d(_[0-9k])?(_[0-9a-z]+)?|(?:mx|nv)fp4|f16|bf16|f32)(?=[-._/])", re.IGNORECASE)


def shards_of(path: Path) -> list[Path]:
    """Return all shards of a model, by the path of one; the path alone if its name is not that of a shard."""
    match = _SHARD.fullmatch(path.name)
    count = int(match["count"]) if match else 1
    if match is None or not 1 < count <= MOST_SHARDS or not 0 < int(match["number"]) <= count:
        return [path]
    return [path.with_name(f"{match['stem']}-{number:05}-of-{count:05}{SUFFIX}") for number in range(1, count + 1)]


def text_models(names: Collection[str]) -> list[str]:
    """Return the models among these names: the first file of each. Files of encoders are left out."""
    files = [name for name in sorted(names) if name.lower().endswith(SUFFIX) and not _has_encoders(name)]
    return [name for name in files if shards_of(Path(name))[0] == Path(name)]


def projectors(names: Collection[str], model: str) -> list[str]:
    """Return the encoder files in the folder of a model's file, best match first.

    In a folder of several models, names with the fewest words that the model's name lacks come first. Among equals the
    order is by precision, nearest to the one that encoders were trained in first.
    """
    folder, words = PurePosixPath(model).parent, set(_words(model))

    def order(name: str) -> tuple[int, int, str]:
        lower = PurePosixPath(name).name.lower()
        precision = next((at for at, each in enumerate(_PRECISIONS) if each in lower), len(_PRECISIONS))
        return len(set(_words(name)) - words), precision, name

    files = (name for name in names if name.lower().endswith(SUFFIX) and _has_encoders(name))
    return sorted((name for name in files if PurePosixPath(name).parent == folder), key=order)


def are_one_model(names: Collection[str]) -> bool:
    """Return True if all models among these names are one model in several quantizations, by the words of the names."""
    titles = {tuple(word for word in _words(name) if not _QUANTIZED.fullmatch(word)) for name in text_models(names)}
    return len(titles) <= 1


def _has_encoders(name: str) -> bool:
    return _ENCODERS in name.lower()


def _words(name: str) -> list[str]:
    """Return the words of a file's name that tell the model, without those for encoders and precisions."""
    plain = re.sub("|".join((_ENCODERS, *_PRECISIONS)), " ", PurePosixPath(name).name.lower().removesuffix(SUFFIX))
    return [word for word in re.split(r"[-._ ]", plain) if word and word != "model"]


def choose(names: Collection[str], wanted: str | None, where: str) -> list[str]:
    """Return the files of one model: of this file name or quantization; without ``wanted`` the only one, or the usual.

    Raises:
        CheckpointNotFoundError: no model matches, or several do.
    """
    models = text_models(names)
    if wanted is None:
        chosen = models if len(models) == 1 else [name for name in models if _is_of(name, PREFERRED)]
        expected = "one GGUF file, or a choice of one of several"
    else:
        chosen = [name for name in models if name == wanted or PurePosixPath(name).name == wanted]
        chosen = chosen or [name for name in models if _is_of(name, wanted)]
        expected = f"a GGUF file named {wanted}, or of that quantization"
    if len(chosen) != 1:
        shown = ", ".join(models[:12]) or "none"
        advice = f'Name one behind a colon: "{where}:{_quantization(models)}".' if models else ""
        raise CheckpointNotFoundError(where, expected, shown, advice)
    return [path.as_posix() for path in shards_of(Path(chosen[0]))]


def _is_of(name: str, quantization: str) -> bool:
    return re.search(rf"[-._/]{re.escape(quantization)}[-._/]", f"/{name}", re.IGNORECASE) is not None


def _quantization(models: Sequence[str]) -> str:
    match = _KNOWN.search(models[0])
    return match[1] if match else PurePosixPath(models[0]).name
