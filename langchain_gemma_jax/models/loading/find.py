"""A model's files by the name that a caller gives it: found, and fetched if need be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from langchain_gemma_jax.errors import InputError, ModelNotOnHubError, OfflineError
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gguf.ollama import PREFIX, find_ollama
from langchain_gemma_jax.models.loading.model_names import check_name
from langchain_gemma_jax.models.torchax import asked as torchax
from langchain_gemma_jax.stopping import Stop


@dataclass(frozen=True)
class FoundFiles:
    """Where a model's files are, and what is kept beside them."""

    path: Path
    name: str
    defaults: Mapping[str, object] = field(default_factory=dict)  # for generating
    templated: bool = False  # a chat template is there
    encoders: Path | None = None  # of pictures and sounds, where it is not their folder that says which these are
    by_torch: bool = False  # transformers' code runs it


def find(
    source: str | os.PathLike[str], how: HowToLoad, *, progress: bool | None = None, stop: Stop | None = None
) -> FoundFiles:
    """Find a model's files, and fetch them if need be.

    Raises:
        UnknownModelError: there is no such folder or file, and it is no id on the Hub. HubError: fetching failed.
        InputError: a revision of what is not on the Hub. InstallationError: what it needs to run is missing.
    """
    if torchax.is_for_torchax(source):
        from langchain_gemma_jax.models.torchax.versions import check_versions

        check_versions()  # before anything is fetched
        named = str(source).removeprefix(torchax.PREFIX)
        return replace(_find(named, how, progress=progress, stop=stop), by_torch=True)
    return _find(source, how, progress=progress, stop=stop)


def _find(source: str | os.PathLike[str], how: HowToLoad, *, progress: bool | None, stop: Stop | None) -> FoundFiles:
    if (own := embedded_folder(source)) is not None:
        source = own
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    here = not isinstance(source, str) or (source and os.path.exists(path))  # noqa: PTH110
    in_ollama = not here and isinstance(source, str) and source.startswith(PREFIX)
    if (here or in_ollama) and how.revision is not None:
        where = str(path) if here else source
        raise InputError(f"revision={how.revision!r} is for models on the Hub, and {str(where)!r} is here already.")
    if here:
        return FoundFiles(path, path.stem if path.is_file() else path.resolve().name)
    if in_ollama:
        kept = find_ollama(str(source))
        return FoundFiles(kept.path, kept.name, kept.defaults, kept.templated, kept.encoders)
    model_id, _, file = str(source).partition(":")
    check_name(str(source))
    from langchain_gemma_jax.models.hub.download import download

    try:
        fetched = download(
            model_id, revision=how.revision, token=how.token, progress=progress, stop=stop, file=file or None
        )
        return FoundFiles(fetched, str(source))
    except (ModelNotOnHubError, OfflineError) as error:
        error.add_note(f"If a folder or file was meant: there is none at {path.absolute()}.")
        raise
