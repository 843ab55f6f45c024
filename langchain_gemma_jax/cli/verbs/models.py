"""``gemma-jax models``: list the models that are known, on the disk and in memory; fetch one, delete one."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_gemma_jax.cli.terminal.arguments import Verbs, nearest, subverbs, verb
from langchain_gemma_jax.cli.terminal.output import complain, interactive, printable, say, say_wrapped
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.residency.status_file import RunningEngine, running_engines
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.configuration.embedded import CONTEXT, EMBEDDED, embedded_folder
from langchain_gemma_jax.models.hub.known_ids import hub_id

if TYPE_CHECKING:
    from huggingface_hub import HFCacheInfo


@dataclass(frozen=True)
class OnDisk:
    """A model in the Hub's cache."""

    name: str
    nbytes: int
    used_at: float
    folder: Path
    commits: tuple[str, ...]


def add(verbs: Verbs) -> None:
    """Add the verb."""
    text = "list known models: published sizes, on the disk, and in the memory of running processes"
    parser = verb(verbs, "models", text, "gemma-jax models pull google/gemma-3-1b-it")
    parser.set_defaults(run=_ls)
    actions = subverbs(parser, "ACTION")
    verb(actions, "ls", f"{text}; the default", "gemma-jax models ls").set_defaults(run=_ls)
    pull = verb(
        actions, "pull", "fetch a model from the Hugging Face Hub", "gemma-jax models pull google/gemma-3-1b-it"
    )
    pull.add_argument("model", help="its id")
    pull.take_settings("revision")
    pull.set_defaults(run=_pull)
    rm = verb(
        actions, "rm", "delete a model from the Hub's cache on the disk", "gemma-jax models rm google/gemma-3-1b-it"
    )
    rm.add_argument("model", help="its id, as `gemma-jax models` lists it")
    rm.add_argument("--yes", action="store_true", help="do not ask")
    rm.set_defaults(run=_rm)


def _ls(_: argparse.Namespace) -> int:
    say_wrapped("Known sizes, in bfloat16:")
    for name, config in known().items():
        size = show_bytes(total_bytes(abstract(config)))
        say_wrapped(f"  {hub_id(name):32} {size:>10} of weights, up to {config.max_context:>7,} tokens")
    say_wrapped("Embedded, in this package:")
    for name in EMBEDDED:
        folder = embedded_folder(name)
        if folder is not None:
            size = show_bytes(sum(file.stat().st_size for file in folder.iterdir()))
            say_wrapped(f"  {name:20} {size:>10} on the disk, up to {CONTEXT:>7,} tokens")
    disk = on_disk()
    say_wrapped(f"On the disk, from the Hugging Face Hub: {show_bytes(sum(each.nbytes for each in disk))} together")
    for each in sorted(disk, key=lambda each: -each.used_at):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used_at))
        say_wrapped(f"  {each.name:40} {show_bytes(each.nbytes):>10}, last used {used}")
    say_wrapped("GGUF files on the disk, of Ollama, the Hub's cache, llama.cpp and LM Studio:")
    for line in _gguf_files():
        say_wrapped(f"  {printable(line)}")
    say_wrapped("Adapters (LoRA) on the disk, for adapter=...:")
    for line in _adapters():
        say_wrapped(f"  {printable(line)}")
    engines = running_engines()
    count = len({each.process for each in engines})
    say_wrapped(f"In memory, in {count} {'process' if count == 1 else 'processes'}:")
    for engine in engines:
        for line in _in_memory(engine):
            say_wrapped(f"  {printable(line)}")
    return 0


def _gguf_files() -> Iterator[str]:
    """Yield a line for each Gemma in files of other programs, by its name here, and the number of other models."""
    from langchain_gemma_jax.models.gguf.local_files import local_files

    found = [each for each in local_files() if not each.is_adapter]
    gemmas = [each for each in found if each.is_gemma]
    for each in sorted(gemmas, key=lambda each: (each.program, each.source)):
        facts = [each.architecture, each.mixture, each.program]
        yield f"{each.source:40} {show_bytes(each.nbytes):>10}, {', '.join(filter(None, facts))}"
    if others := len(found) - len(gemmas):
        yield f"and {others} of other families"


def _adapters() -> Iterator[str]:
    """Yield a line for each adapter of a Gemma in the Hub's cache, and in the folders of other programs."""
    from langchain_gemma_jax.models.gguf.local_files import local_files

    cache = _cache()
    for repo in () if cache is None else cache.repos:
        for revision in repo.revisions:
            folder = Path(revision.snapshot_path)
            base = _text_in(folder / "adapter_config.json", "base_model_name_or_path")
            if "gemma" in base.lower():
                yield f"{folder} {show_bytes(revision.size_on_disk):>10}, PEFT, for {base}"
    for each in local_files():
        if each.is_adapter and each.is_gemma:
            yield f"{each.source} {show_bytes(each.nbytes):>10}, {each.architecture}, {each.program}"


def _in_memory(engine: RunningEngine) -> Iterator[str]:
    if not engine.readable:
        yield written_by_another(engine)
    for notice in engine.models:
        use = "in use" if notice.in_use else f"idle for {max(0.0, time.time() - notice.used_at):.0f} s"
        each = "" if notice.devices == 1 else f" on each of {notice.devices} devices"
        facts = [f"{show_bytes(notice.nbytes)}{each}", use if notice.state == "resident" else notice.state]
        facts += ["pinned"] * notice.pinned
        facts += [f"adapters {notice.adapters}"] * bool(notice.adapters)
        facts += [f"{show_bytes(notice.host_kv)} of KV on the host"] * bool(notice.host_kv)
        yield f"{notice.name}, process {notice.process}: {', '.join(facts)}"


def written_by_another(engine: RunningEngine) -> str:
    """Return a text about an engine whose status this version cannot read."""
    which = f"version {printable(engine.version)}" if engine.version else "another version"
    return f"process {engine.process}: its status was written by {which} of this package, which this one cannot read"


def _pull(options: argparse.Namespace) -> int:
    from langchain_gemma_jax.models.hub.download import download

    say(str(download(options.model, revision=options.revision)))
    return 0


def _rm(options: argparse.Namespace) -> int:
    disk = {each.name: each for each in on_disk()}
    if options.model in EMBEDDED:
        raise InputError(f"{options.model} is part of this package, and takes no other room on the disk.")
    if (found := disk.get(options.model)) is None:
        hint = nearest(options.model, disk) or ". `gemma-jax models` lists what is there."
        complain(f"there is no Gemma {options.model!r} in the Hub's cache on this disk{hint}")
        return 1
    if users := [str(engine.process) for engine in running_engines() if _uses(engine, found)]:
        raise InputError(
            f"{found.name} is in memory in process {', '.join(users)}. End it, or unload the model, first."
        )
    if not options.yes:
        if not interactive():
            raise InputError(f"{found.name} is deleted only with --yes: there is no terminal to ask at.")
        if not _agrees(f"Delete {found.name}, {show_bytes(found.nbytes)}, from {found.folder}? [y/N] "):
            say("Nothing was deleted.")
            return 1
    cache = _cache()
    if cache is not None:
        cache.delete_revisions(*found.commits).execute()
    if found.folder.exists():  # what cannot be deleted is only logged
        complain(f"{found.name}: something in {found.folder} could not be deleted. Is it yours?")
        return 1
    say(f"{found.name}: {show_bytes(found.nbytes)} deleted")
    return 0


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in {"y", "yes"}
    except EOFError:  # Ctrl-D
        say()
        return False


def _uses(engine: RunningEngine, model: OnDisk) -> bool:
    names = [notice.name for notice in engine.models]
    return any(name == model.name or Path(name).is_relative_to(model.folder) for name in names)


def on_disk() -> list[OnDisk]:
    """Return the models in the Hub's cache whose configuration is a Gemma's."""
    found = _cache()
    return [
        OnDisk(
            repo.repo_id,
            repo.size_on_disk,
            repo.last_accessed,
            Path(repo.repo_path),
            tuple(revision.commit_hash for revision in repo.revisions),
        )
        for repo in (() if found is None else found.repos)
        if any(_is_gemma(Path(revision.snapshot_path)) for revision in repo.revisions)
    ]


def _cache() -> HFCacheInfo | None:
    from huggingface_hub import CacheNotFound, constants, scan_cache_dir

    try:
        return scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"The Hub's cache cannot be read: {error}") from error


def _is_gemma(folder: Path) -> bool:
    return _text_in(folder / "config.json", "model_type").startswith("gemma")


def _text_in(path: Path, name: str) -> str:
    """Return a text in a JSON file; empty, if there is none."""
    try:
        found = json.loads(path.read_text()).get(name, "")
    except (OSError, ValueError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""
