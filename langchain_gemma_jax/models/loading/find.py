"""The first step of loading: find a model's files by a caller's name for the model, and download them if necessary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from langchain_gemma_jax.errors import InputError, ModelNotOnHubError, OfflineError
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gguf.ollama import PREFIX, find_ollama
from langchain_gemma_jax.models.loading.drafters import OFF, AskedDrafter, drafter_folder_of
from langchain_gemma_jax.models.loading.model_names import check_name
from langchain_gemma_jax.models.torchax import asked as torchax
from langchain_gemma_jax.stopping import Stop


@dataclass(frozen=True)
class SourceFiles:
    """The path of a model's files, and facts that are stored with them."""

    path: Path
    name: str
    defaults: Mapping[str, object] = field(default_factory=dict)  # of sampling
    templated: bool = False  # True: there is a chat template
    encoders: Path | None = None  # the file of picture and sound encoders; None: look for it in the model's folder
    drafter: AskedDrafter | None = None  # beside it, or named by a caller; None: there is none, or none is wanted
    by_torch: bool = False  # True: transformers' code runs the model


def find(
    source: str | os.PathLike[str], how: HowToLoad, *, progress: bool | None = None, stop: Stop | None = None
) -> SourceFiles:
    """Find a model's files, and download them if necessary.

    Raises:
        UnknownModelError: ``source`` is no folder, no file and no id on the Hub. HubError: the download failed.
        InputError: a revision was given for a local model. InstallationError: a library that it needs is missing.
    """
    if torchax.is_for_torchax(source):
        from langchain_gemma_jax.models.torchax.versions import check_versions

        check_versions()  # before anything is fetched
        named = str(source).removeprefix(torchax.PREFIX)
        return replace(_find(named, how, progress=progress, stop=stop), by_torch=True)
    found = _find(source, how, progress=progress, stop=stop)
    return replace(found, drafter=_drafter(found.path, how, progress=progress, stop=stop))


def _drafter(model: Path, how: HowToLoad, *, progress: bool | None, stop: Stop | None) -> AskedDrafter | None:
    """Find the drafter that a caller names, or that lies beside the model. Only one that is named is downloaded."""
    if how.drafter == OFF:
        return None
    if how.drafter is not None:
        there = _find(how.drafter, replace(how, revision=None), progress=progress, stop=stop)
        return AskedDrafter(there.path, named=True)
    place = drafter_folder_of(model)
    return None if place is None else AskedDrafter(place, named=False)


def _find(source: str | os.PathLike[str], how: HowToLoad, *, progress: bool | None, stop: Stop | None) -> SourceFiles:
    if (own := embedded_folder(source)) is not None:
        source = own
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    here = not isinstance(source, str) or (source and os.path.exists(path))  # noqa: PTH110
    in_ollama = not here and isinstance(source, str) and source.startswith(PREFIX)
    if (here or in_ollama) and how.revision is not None:
        where = str(path) if here else source
        raise InputError(f"revision={how.revision!r} is for models on the Hub, and {str(where)!r} is here already.")
    if here:
        return SourceFiles(path, path.stem if path.is_file() else path.resolve().name)
    if in_ollama:
        kept = find_ollama(str(source))
        return SourceFiles(kept.path, kept.name, kept.defaults, kept.templated, kept.encoders)
    model_id, _, file = str(source).partition(":")
    check_name(str(source))
    from langchain_gemma_jax.models.hub.download import download

    try:
        fetched = download(
            model_id, revision=how.revision, token=how.token, progress=progress, stop=stop, file=file or None
        )
        return SourceFiles(fetched, str(source))
    except (ModelNotOnHubError, OfflineError) as error:
        error.add_note(f"If a folder or file was meant: there is none at {path.absolute()}.")
        raise
