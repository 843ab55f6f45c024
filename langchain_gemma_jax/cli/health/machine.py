"""Checks of the machine that need no model: releases, devices, memory, compile cache, recipes."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from importlib import metadata

from langchain_gemma_jax.cli.health.accelerators import accelerator_software, pool_of
from langchain_gemma_jax.cli.health.findings import Finding, Verdict
from langchain_gemma_jax.config import cache_dir, compile_cache_root, kernels_wanted, memory_fraction, prefix_folder
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.host.unused_accelerator import unused_accelerator
from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.jax_check import FAULTS, SOUND, find_fault

LITTLE = 2 * 2**30  # bytes of memory with which a model of a billion weights does not fit


def look(package_version: str) -> Iterator[Finding]:
    """Yield the findings, one check after the other. A check that raises an error is a finding, too."""
    looks: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("releases", lambda: _releases(package_version)),
        ("devices", _devices),
        ("accelerators", accelerator_software),
        ("memory", _memory),
        ("compile cache", _compile_cache),
        ("kept prefixes", _kept_prefixes),
        ("kernels", _kernels),
        ("multiplying", _multiplying),
    )
    for what, each in looks:
        try:
            yield from each()
        except Exception as error:  # noqa: BLE001  any error is a finding
            yield Finding(what, Verdict.BAD, f"{type(error).__name__}: {error}", _advice(error))


def _advice(error: Exception) -> str:
    return "" if isinstance(error, GemmaJaxError) else "Install JAX again for this machine: docs/install.md."


def _releases(package_version: str) -> Iterator[Finding]:
    found = {name: metadata.version(name) for name in ("jax", "jaxlib", "langchain-core", "numpy")}
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    yield Finding(
        "releases", Verdict.OK, f"langchain-gemma-jax {package_version}, Python {platform.python_version()}, {listed}"
    )
    faults = [fault for name in ("jax", "jaxlib") if (fault := find_fault(found[name])) is not None]
    refused = ", ".join(
        f"{'.'.join(map(str, each.first))} to before {'.'.join(map(str, each.fixed))}" for each in FAULTS
    )
    if faults:
        yield Finding("known faults", Verdict.BAD, faults[0].what, f"Install a release {SOUND}.")
    elif _number(found["jax"]) != _number(found["jaxlib"]):
        yield Finding(
            "known faults",
            Verdict.WARN,
            f"jax {found['jax']} with jaxlib {found['jaxlib']}",
            "Install both in one release.",
        )
    else:
        yield Finding("known faults", Verdict.OK, f"this is none of the releases that are refused: {refused}")


def _number(version: str) -> str:
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def _devices() -> Iterator[Finding]:
    import jax

    devices = jax.local_devices()
    kinds = sorted({device.device_kind for device in devices})
    platforms = {device.platform for device in devices}
    yield Finding("devices", Verdict.OK, f"{len(devices)} x {', '.join(kinds)} ({', '.join(sorted(platforms))})")
    if platforms == {"cpu"} and (unused := unused_accelerator()) is not None:
        yield Finding(
            "accelerator", Verdict.WARN, f"{unused}, and JAX computes on the CPU", "Install its JAX: docs/install.md."
        )


def _memory() -> Iterator[Finding]:
    import jax

    from langchain_gemma_jax import configure
    from langchain_gemma_jax.engine.residency.device_memory import device_memory, host_memory, kv_budget, memory_budget
    from langchain_gemma_jax.models.seams.placement import SingleDevice

    where, settings = SingleDevice(jax.local_devices()[0]), configure()
    budget, has = memory_budget(settings, where), device_memory(where)
    text = (
        f"{show_bytes(has)} on the device, {show_bytes(host_memory())} on the host; models and conversations may take "
        f"{show_bytes(budget)}, conversations of one model {show_bytes(kv_budget(settings, where))}"
    )
    if budget > has:
        yield Finding("memory", Verdict.BAD, text, "Set a budget that there is: configure(memory_budget=...).")
    elif budget < LITTLE:
        yield Finding(
            "memory", Verdict.WARN, text, "Give this process more memory, or use models of 270M weights or less."
        )
    else:
        yield Finding("memory", Verdict.OK, text)
    if where.platform == "gpu" and (pool := where.memory_limit()) is not None:
        yield pool_of(pool, memory_fraction())


def _compile_cache() -> Iterator[Finding]:
    from langchain_gemma_jax.compile_cache.install import current_store

    root = compile_cache_root()
    if root is None:
        yield Finding(
            "compile cache", Verdict.WARN, "it is off", "Set GEMMA_JAX_COMPILE_CACHE=on: each process compiles again."
        )
        return
    store = current_store()
    if store is None:
        yield Finding(
            "compile cache",
            Verdict.WARN,
            f"{root} is not used: JAX's own settings say so",
            "See docs/compiling.md#the-compile-cache.",
        )
        return
    entries = store.entries()
    size = show_bytes(sum(entry.bytes for entry in entries))
    saved = sum(entry.seconds for entry in entries)
    yield Finding(
        "compile cache", Verdict.OK, f"{store.folder}: {len(entries)} programs, {size}, {saved:.0f} s to compile"
    )


def _kept_prefixes() -> Iterator[Finding]:
    """Yield a finding on the prefixes that are kept on the disk, if there is a folder of them."""
    from langchain_gemma_jax.engine.prefix_store.prefix_names import PREFIX
    from langchain_gemma_jax.private.folder import UnsafeFolderError, open_folder

    where = prefix_folder()
    if not where.is_dir():
        return
    try:
        folder = open_folder(where, where)
        files = [folder.stat(name).st_size for name in folder.names() if name.endswith(PREFIX)]
    except (OSError, UnsafeFolderError) as error:
        advice = "None is read or written until that is mended: docs/prefix-store.md."
        yield Finding("kept prefixes", Verdict.WARN, f"{where}: {error}", advice)
        return
    yield Finding("kept prefixes", Verdict.OK, f"{where}: {len(files)} prefixes, {show_bytes(sum(files))}")


def _kernels() -> Iterator[Finding]:
    import jax

    from langchain_gemma_jax.kernels.library import in_words, kernels

    wanted = kernels_wanted() != "off" and jax.default_backend() == "cpu"
    if kernels().run or not wanted:
        yield Finding("kernels", Verdict.OK, in_words())
    else:
        advice = "XLA computes everything, several times slower for packed weights: docs/kernels.md."
        yield Finding("kernels", Verdict.WARN, in_words(), advice)


def _multiplying() -> Iterator[Finding]:
    """Yield the way in which matrices are multiplied here, for each dtype. It is measured once on each machine."""
    from langchain_gemma_jax.models.recipes.choose import choose_recipe

    for dtype in ("float32", "bfloat16"):
        recipe = choose_recipe(dtype)
        plan = recipe.layers
        few = f"few (up to {plan.most_of_few}) {plan.few_rows.name.lower()}"
        how = f"one row {plan.one_row.name.lower()}, {few}, many {plan.many_rows.name.lower()}"
        origin = {
            "probe": "measured just now", "disk": f"measured before, kept in {cache_dir() / 'recipes'}",
            "default": "the safe default",
        }.get(recipe.source, recipe.source)  # fmt: skip
        yield Finding(f"multiplying in {dtype}", Verdict.OK, f"{how}: {origin}")
