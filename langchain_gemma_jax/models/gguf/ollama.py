"""Models in Ollama's store: its manifests name the blobs of a model.

The store is ``OLLAMA_MODELS``, or else the place where Ollama keeps it for a user or for its service. It is only read.
A blob's name is the digest of its content. While it is downloaded, its name has ``-partial`` appended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from langchain_gemma_jax import config
from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    InputError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.configuration.strict_json import parse_object, short

PREFIX = "ollama:"
REGISTRY, LIBRARY, LATEST = "registry.ollama.ai", "library", "latest"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MOST_BYTES = 1 << 20  # of a manifest, or of parameters: they have some hundred
_KIND = "application/vnd.ollama.image."
_SAMPLING = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
}


@dataclass(frozen=True)
class OllamaModel:
    """A model in the store."""

    name: str  # as Ollama shows it: "gemma3:4b"
    path: Path  # of the blob, which is a GGUF file
    defaults: Mapping[str, object] = field(default_factory=dict)  # with the names of a generation_config.json
    templated: bool = False  # True: the store has a chat template for it, in Ollama's own format
    encoders: Path | None = None  # the blob of its mmproj file


def find_ollama(source: str) -> OllamaModel:
    """Return the model ``"ollama:name:tag"``.

    Raises:
        InputError: this is not a valid name of a model in Ollama.
        CheckpointNotFoundError: the store has no such model, or only a part of it.
        CorruptCheckpointError: its manifest or a blob is damaged.
        CheckpointError: the store cannot be read.
        UnsupportedModelError: it is an adapter over another model.
    """
    manifest, name = _manifest(source)
    try:
        return _model(manifest, name)
    except OSError as error:
        expected = "Ollama's store to be readable"
        advice = "It may belong to another user: set OLLAMA_MODELS to a store of your own, or ask for permission."
        raise CheckpointError(error.filename or manifest, expected, error.strerror or str(error), advice) from error


def _manifest(source: str) -> tuple[Path, str]:
    """Return the path of a model's manifest, and its name."""
    name = source.removeprefix(PREFIX)
    head, _, tag = name.partition(":")
    parts = [*head.split("/"), tag or LATEST]
    if not 2 <= len(parts) <= 4 or not all(_PART.fullmatch(part) and ".." not in part for part in parts):
        raise InputError(f'expected a model of Ollama\'s as in "{PREFIX}gemma3:4b", found {short(source)}.')
    whole = [REGISTRY, LIBRARY, *parts] if len(parts) == 2 else [REGISTRY, *parts] if len(parts) == 3 else parts
    return config.ollama_models().joinpath("manifests", *whole), f"{head}:{tag or LATEST}"


def _model(manifest: Path, name: str) -> OllamaModel:
    if not manifest.is_file():
        raise _not_there(manifest, name)
    layers = _layers(manifest)
    if f"{_KIND}adapter" in layers:
        raise UnsupportedModelError(
            f"{manifest}: {name} is an adapter over another model. Give that model, "
            "and the GGUF file of the adapter as adapter=...."
        )
    if f"{_KIND}model" not in layers:
        raise CorruptCheckpointError(manifest, "a layer with a model", ", ".join(layers) or "no layer")
    path = _blob(manifest, name, *layers[f"{_KIND}model"])
    defaults: Mapping[str, object] = {}
    if f"{_KIND}params" in layers:
        shown = _blob(manifest, name, *layers[f"{_KIND}params"])
        params = parse_object(_small(shown), shown)
        sampling = {ours: params[theirs] for theirs, ours in _SAMPLING.items() if theirs in params}
        defaults = {"do_sample": True, **sampling} if sampling else {}
    encoders = _blob(manifest, name, *layers[projector]) if (projector := f"{_KIND}projector") in layers else None
    return OllamaModel(name, path, defaults, f"{_KIND}template" in layers, encoders)


def _layers(manifest: Path) -> dict[str, tuple[str, int]]:
    """Return digest and size of each layer, by kind."""
    entries = parse_object(_small(manifest), manifest).get("layers")
    layers: dict[str, tuple[str, int]] = {}
    for layer in entries if isinstance(entries, list) else [None]:
        fields = layer if isinstance(layer, dict) else {}
        kind, digest, size = (fields.get(key) for key in ("mediaType", "digest", "size"))
        known = isinstance(kind, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
        if not known or type(size) is not int or size < 0:
            raise CorruptCheckpointError(manifest, "layers with mediaType, digest and size", short(layer))
        layers.setdefault(str(kind), (str(digest), size))
    return layers


def _small(path: Path) -> bytes:
    size = path.stat().st_size
    if not 0 < size <= _MOST_BYTES:
        advice = "Ollama may be writing to it. Try again when it is done." if size == 0 else ""
        raise CorruptCheckpointError(path, f"1 to {_MOST_BYTES:,} bytes", f"{size:,}", advice)
    return path.read_bytes()


def _blob(manifest: Path, name: str, digest: str, size: int) -> Path:
    path = config.ollama_models() / "blobs" / digest.replace(":", "-")
    again = f"Fetch it again: ollama pull {name}"
    if not path.is_file():
        if any(path.parent.glob(f"{path.name}-partial*")):
            expected = f"a model that Ollama has fetched whole ({name})"
            raise CheckpointNotFoundError(
                path, expected, "a part of it", f"Wait until it is done, or: ollama pull {name}"
            )
        raise CheckpointNotFoundError(path, f"the blob that {manifest} names", "no such file", again)
    if (found := path.stat().st_size) != size:
        advice = f"Ollama may be writing to it: try again when it is done. {again}"
        raise CorruptCheckpointError(path, f"{size:,} bytes, as {manifest} says", f"{found:,} bytes", advice)
    return path


def _not_there(manifest: Path, name: str) -> CheckpointNotFoundError:
    root = config.ollama_models()
    if not root.is_dir():
        advice = "Is Ollama installed here? OLLAMA_MODELS names its folder if it is another one."
        return CheckpointNotFoundError(root, "Ollama's folder of models", "no such folder", advice)
    there = ", ".join(each for each, _ in _names(root)) or "no model"
    unfinished = any((root / "blobs").glob("*-partial*"))
    state = " and a download that is under way or was broken off" if unfinished else ""
    expected = f"the model {name} in Ollama's store"
    return CheckpointNotFoundError(manifest, expected, there + state, f"Fetch it: ollama pull {name}")


def ollama_models() -> Iterator[OllamaModel]:
    """Yield every complete model of the store. Unreadable ones are skipped."""
    for name, _ in _names(config.ollama_models()):
        try:
            yield find_ollama(PREFIX + name)
        except (CheckpointError, InputError):
            continue


def _names(root: Path) -> list[tuple[str, Path]]:
    """Return name and path of every manifest, with the names that Ollama shows."""
    names = []
    for path in sorted((root / "manifests").glob("*/*/*/*")):
        registry, owner, name, tag = path.relative_to(root / "manifests").parts
        shown = [part for part, usual in ((registry, REGISTRY), (owner, LIBRARY)) if part != usual]
        if registry != REGISTRY:
            shown = [registry, owner]
        names.append(("/".join([*shown, name]) + f":{tag}", path))
    return names
