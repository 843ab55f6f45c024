"""``gemma-jax models``: what is known, what is on the disk, and what is in memory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.residency.status_file import shown_models
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.embedded import CONTEXT, EMBEDDED, embedded_folder

Say = Callable[[str], None]


@dataclass(frozen=True)
class OnDisk:
    """A model in the Hub's cache."""

    name: str
    nbytes: int
    used_at: float


def show_models(say: Say) -> None:
    """Print all three."""
    say("Known sizes, in bfloat16:")
    for name, config in known().items():
        size = show_bytes(total_bytes(abstract(config)))
        say(f"  {name:20} {size:>10} of weights, up to {config.max_context:>7,} tokens")
    say("Embedded, in this package:")
    for name in EMBEDDED:
        folder = embedded_folder(name)
        if folder is not None:
            size = show_bytes(sum(file.stat().st_size for file in folder.iterdir()))
            say(f"  {name:20} {size:>10} on the disk, up to {CONTEXT:>7,} tokens")
    disk = list(on_disk())
    say(f"On the disk, from the Hugging Face Hub: {show_bytes(sum(each.nbytes for each in disk))} together")
    for each in sorted(disk, key=lambda each: -each.used_at):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used_at))
        say(f"  {each.name:40} {show_bytes(each.nbytes):>10}, last used {used}")
    running = shown_models()
    say(f"In memory, in {len({each.process for each in running})} processes:")
    now = time.time()
    for notice in running:
        use = "in use" if notice.in_use else f"idle for {max(0.0, now - notice.used_at):.0f} s"
        facts = [show_bytes(notice.nbytes), use if notice.state == "resident" else notice.state]
        facts += ["pinned"] * notice.pinned
        facts += [f"{show_bytes(notice.host_kv)} of KV on the host"] * bool(notice.host_kv)
        say(f"  {notice.name}, process {notice.process}: {', '.join(facts)}")


def on_disk() -> Iterator[OnDisk]:
    """The Gemmas in the Hub's cache: those whose configuration says that they are."""
    from huggingface_hub import CacheNotFound, constants, scan_cache_dir

    try:
        found = scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:
        return
    for repo in found.repos:
        if any(_is_gemma(Path(revision.snapshot_path)) for revision in repo.revisions):
            yield OnDisk(repo.repo_id, repo.size_on_disk, repo.last_accessed)


def _is_gemma(folder: Path) -> bool:
    try:
        kind = json.loads((folder / "config.json").read_text()).get("model_type", "")
    except (OSError, ValueError, AttributeError):
        return False
    return isinstance(kind, str) and kind.startswith("gemma")
