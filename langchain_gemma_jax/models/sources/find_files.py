"""A model's files by what a caller calls it: found, and fetched if need be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from langchain_gemma_jax.errors import InputError, ModelNotOnHubError, OfflineError
from langchain_gemma_jax.models.embedded import embedded_folder
from langchain_gemma_jax.models.gguf.ollama import PREFIX, find_ollama
from langchain_gemma_jax.models.sources.model_names import check_name
from langchain_gemma_jax.stopping import Stop


@dataclass(frozen=True)
class FoundFiles:
    """Where a model's files are."""

    path: Path
    name: str
    defaults: Mapping[str, object] = field(default_factory=dict)  # that are kept beside them
    templated: bool = False  # whether a chat template is kept beside them
    encoders: Path | None = None  # of pictures and sounds, where it is not their folder that says which these are


def find_files(
    source: str | os.PathLike[str],
    *,
    revision: str | None,
    token: str | None,
    progress: bool | None,
    stop: Stop | None,
) -> FoundFiles:
    """The files, fetched if need be, and the model's name."""
    if (own := embedded_folder(source)) is not None:
        source = own
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    here = not isinstance(source, str) or (source and os.path.exists(path))  # noqa: PTH110
    in_ollama = not here and isinstance(source, str) and source.startswith(PREFIX)
    if (here or in_ollama) and revision is not None:
        where = str(path) if here else source
        raise InputError(f"revision={revision!r} is for models on the Hub, and {str(where)!r} is here already.")
    if here:
        return FoundFiles(path, path.stem if path.is_file() else path.resolve().name)
    if in_ollama:
        found = find_ollama(str(source))
        return FoundFiles(found.path, found.name, found.defaults, found.templated, found.encoders)
    model_id, _, file = str(source).partition(":")
    check_name(str(source))
    from langchain_gemma_jax.models.hub.download import download

    try:
        fetched = download(model_id, revision=revision, token=token, progress=progress, stop=stop, file=file or None)
        return FoundFiles(fetched, str(source))
    except (ModelNotOnHubError, OfflineError) as error:
        error.add_note(f"If a folder or file was meant: there is none at {path.absolute()}.")
        raise
