"""The rules for every test: strict JAX, an empty home, no network but this machine's own."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from importlib import metadata
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from zlib import crc32

import pytest

from tests.device_tests import FILES as DEVICE_FILES
from tests.xla_flags import QUICK_COMPILES, XlaFlagsNotReadError, known

# Before anything imports JAX or huggingface_hub: both read their settings once, at import.
# The child processes that tests start inherit them.
_SCRATCH = tempfile.TemporaryDirectory(prefix="gemma-jax-tests-")
_HOMES = count()
_PLATFORMS = os.environ.get("JAX_PLATFORMS", "cpu")  # JAX_PLATFORMS=cuda make test: the same tests on a GPU
for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING", "GEMMA_JAX_", "JAX_", "XLA_"))]:
    del os.environ[name]
# The processes that tests start import JAX, which takes four times as long where its bytecode is not kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ |= {
    "JAX_PLATFORMS": _PLATFORMS,
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",  # a silent float64 or a bf16 that became f32 is a bug here
    "JAX_NUMPY_RANK_PROMOTION": "raise",  # so is a broadcast that nobody wrote
    "GEMMA_JAX_COMPILE_WAIT": "3600",  # how long a busy machine compiles is no result of a test
    "GEMMA_JAX_COMPILE_CACHE": "off",  # each test compiles for itself, but where keeping programs is what it tests
    "HF_HOME": str(Path(_SCRATCH.name, "hf")),
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}

VERSIONS_THAT_MATTER = ("jax", "jaxlib", "numpy", "tensorstore", "tokenizers", "langchain-core")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", metavar="K/N", help="of the long tests only the Kth of N shares; all of the others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.partition("::")[0].removeprefix("tests/") in DEVICE_FILES:
            item.add_marker("device")
    if (share := config.getoption("share")) is None:
        return
    which, of = share_of(share)
    wanted, left = list[pytest.Item](), list[pytest.Item]()
    for item in items:  # tests of one file stay together, as they share what they compile
        file = item.nodeid.partition("::")[0]
        (left if item.get_closest_marker("long") and crc32(file.encode()) % of != which else wanted).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = wanted


def share_of(text: str) -> tuple[int, int]:
    """Which share is meant, counted from 0, and of how many."""
    which, _, of = text.partition("/")
    if not (which.isdigit() and of.isdigit() and 1 <= int(which) <= int(of)):
        raise pytest.UsageError(f"--share: expected K/N, as 1/2, found {text!r}")
    return int(which) - 1, int(of)


# Most of what tests take is compiling small programs, so XLA is told to be quick about it. The slow tests, alone or
# with the others, compile as users do.
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr") not in ("not slow", "not slow and not long"):
        return
    try:
        os.environ["XLA_FLAGS"] = " ".join(known(QUICK_COMPILES))  # before JAX compiles anything
    except XlaFlagsNotReadError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.INTERNAL_ERROR)


def pytest_report_header() -> list[str]:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in VERSIONS_THAT_MATTER)
    flags = os.environ.get("XLA_FLAGS", "")
    return [versions, f"{os.cpu_count()} cores, JAX_PLATFORMS={_PLATFORMS}, XLA_FLAGS={flags!r}"]


def pytest_unconfigure() -> None:
    _SCRATCH.cleanup()


@pytest.fixture(autouse=True)
def _empty_home(monkeypatch):
    """Each test has a home of its own, so no cache or setting of the user's reaches it, or is touched by it."""
    # Not by tmp_path_factory: it looks at all folders that it has made for the number of the next, thousands of times.
    home = Path(_SCRATCH.name, "homes", str(next(_HOMES)))
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))


@pytest.fixture(scope="module", autouse=True)
def _old_objects_aside():
    """Keep what earlier modules left, mostly traces of programs: looking at it took each collection a second."""
    gc.collect()
    gc.freeze()


class NetworkUsedInTestError(RuntimeError):
    """A test spoke to another machine."""


def _refuse_other_machines(event: str, arguments: tuple[object, ...]) -> None:
    # An audit hook sees every way to a socket: http clients, asyncio and extension modules that go through `socket`.
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        address = arguments
    else:
        return
    host = address[0] if isinstance(address, tuple) else None  # else a unix socket's path
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if isinstance(host, str) and not _is_this_machine(host):
        raise NetworkUsedInTestError(f"tests speak to 127.0.0.1 only, not to {host!r} ({event})")


def _is_this_machine(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


sys.addaudithook(_refuse_other_machines)
