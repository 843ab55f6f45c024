"""A process of its own that serves the tiny model while something is wrong with its cache; and what makes it wrong.

    python tests/engine/faulty_process.py FOLDER [turns=N] [user] [vanish=FOLDER] [powerless] [dies=N] [watch=FOLDER]

``user``: the process compiles functions of its own too. ``vanish``: after the first turn the folder is gone.
``powerless``: root has no more rights than others. ``dies``: it is killed at the Nth call that changes a file of the
cache. ``watch``: whatever is opened or listed below the folder is told. Prints a line of JSON.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from langchain_gemma_jax.compile_cache.entry import peek, unseal
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.private.folder import DamagedError
from tests.engine.fresh_process import CACHE, ROOT, talk

SEED = os.environ.get("ENGINE_TEST_SEED", "20240607")
CHANGES = ("open", "write", "replace", "unlink")
WATCHED = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.utime", "os.chmod")
DROP_FROM_BOUNDS, OVERRIDE, SEARCH = 24, 1, 2  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def start(
    folder: Path, cache: Path | str, measured: Path, *arguments: str, warnings: str = "error", **environment: str
) -> subprocess.Popen[str]:
    """Such a process, started.

    Args:
        folder: the model.
        cache: where compiled programs are kept.
        measured: where it is kept how fast matrices are multiplied. Those that share it compile the same programs.
        arguments: as above.
        warnings: "error", or "default" to have them printed.
        environment: what else it finds there.
    """
    return subprocess.Popen(
        [sys.executable, "-W", f"{warnings}::UserWarning", str(Path(__file__)), str(folder), *arguments],
        env=environment_of(cache, measured) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment_of(cache: Path | str, measured: Path) -> dict[str, str]:
    """That of such a process: all of them multiply in the same way, and compile without much ado."""
    return os.environ | {
        CACHE: str(cache),
        "GEMMA_JAX_CACHE_DIR": str(measured),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONPATH": str(ROOT),
    }


# What makes it wrong.


def files(root: Path) -> dict[str, Path]:
    """Return a cache's files, by kind: ``program/.../read/16/64``, ``opening/...``, ``jax/...``, ``manifest``."""
    found = {}
    for path in folder_of(root).iterdir():
        found["manifest" if path.name == "manifest" else peek(path.read_bytes())[0]] = path
    return found


def folder_of(root: Path) -> Path:
    """The one folder of a cache that has entries."""
    (folder,) = {path.parent for path in root.glob("*/*/manifest")}
    return folder


def copied(good: Path, root: Path) -> Path:
    """A cache of its own, with a manifest that its files are listed in."""
    shutil.copytree(good, root)
    assert Store(folder_of(root), root=root).verify() == []
    return root


def damaged(root: Path) -> list[str]:
    """The files of a cache that are not as they were written."""
    found = []
    for path in folder_of(root).iterdir():
        try:
            unseal(path.read_bytes())
        except DamagedError:
            found.append(path.name)
    return found


def flip(path: Path, chance: random.Random, *, unseen: bool) -> None:
    """Turn one bit around, every third time in the first 300 bytes. ``unseen``: as a disk does, times stay."""
    facts = path.stat()
    position = chance.randrange(min(facts.st_size, 300) if chance.random() < 1 / 3 else facts.st_size)
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ (1 << chance.randrange(8))]))
    if unseen:
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


# The process.


def die_at(number: int) -> None:
    """Be killed at the Nth call that changes a file of the cache; if it writes, half way."""
    calls = 0

    def wrapped(name: str, call: Callable[..., object], *args: object, **options: object) -> object:
        nonlocal calls
        if name != "open" or (options.get("dir_fd") is not None and int(str(args[1])) & (os.O_CREAT | os.O_RDWR)):
            calls += 1
            if calls == number:
                if name == "write":
                    call(args[0], bytes(args[1])[: len(bytes(args[1])) // 2])  # type: ignore[call-overload]
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)

    for name in CHANGES:
        setattr(os, name, partial(wrapped, name, getattr(os, name)))
    fcntl.flock = partial(wrapped, "flock", fcntl.flock)


def become_powerless() -> None:
    """Have root's rights to any file taken from this process, by starting it once more."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (OVERRIDE, SEARCH):
        if libc.prctl(DROP_FROM_BOUNDS, right, 0, 0, 0) and ctypes.get_errno() != errno.EPERM:
            raise OSError(ctypes.get_errno(), "prctl")
    arguments = [argument for argument in sys.argv if argument != "powerless"]
    os.execv(sys.executable, [sys.executable, *(f"-W{option}" for option in sys.warnoptions), *arguments])


def watch(folders: list[str]) -> list[str]:
    """Whatever is done in these folders from now on, by an audit hook."""
    seen: list[str] = []

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event in WATCHED and str(args[0]).startswith(tuple(folders)):
            seen.append(f"{event} {args[0]}")

    sys.addaudithook(hook)
    return seen


def users_functions() -> Iterator[tuple[str, object]]:
    """Give the results of functions that are not ours: their bodies compile to different things."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    @jax.jit
    def users_product(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x @ x.T), axis=1)

    @jax.jit
    def users_sort(x: jax.Array) -> jax.Array:
        return jnp.sort(jnp.sin(x), axis=0)[0]

    @jax.jit
    def users_loop(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 5, lambda _, value: value + jnp.sin(jnp.cumsum(value, axis=1)), x)[:, 1]

    values = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    for function in (users_product, users_sort, users_loop):
        yield function.__name__, np.asarray(function(values)).tolist()


def told(folder: str, options: list[str]) -> dict[str, object]:
    """Do what the options say, and return what is printed."""
    values: dict[str, list[str]] = {}
    for option in options:
        name, _, value = option.partition("=")
        values.setdefault(name, []).append(value)
    seen = watch(values.get("watch", []))
    if "dies" in values:
        die_at(int(values["dies"][0]))
    found: dict[str, object] = {}
    if "user" in values:
        found["user"] = users(found)
    if "vanish" in values:
        talk(folder, "turns=1")
        shutil.rmtree(values["vanish"][0])
    return found | talk(folder, *options) | {"seen": seen}


def users(found: dict[str, object]) -> dict[str, object]:
    """Return the results of the user's functions; ``found`` gets what was compiled and found for them."""
    from jax import monitoring

    import langchain_gemma_jax  # noqa: F401  which is all that it takes

    events: Counter[str] = Counter()
    monitoring.register_event_duration_secs_listener(lambda event, *_, **__: events.update([event]))
    monitoring.register_event_listener(lambda event, **_: events.update([event]))
    given = dict(users_functions())
    hits = found["user_hits"] = events["/jax/compilation_cache/cache_hits"]
    found["user_compiled"] = events["/jax/core/compile/backend_compile_duration"] - hits
    return given


if __name__ == "__main__":
    if "powerless" in sys.argv:
        become_powerless()
    print(json.dumps(told(sys.argv[1], sys.argv[2:])))  # noqa: T201
