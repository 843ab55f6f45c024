"""All environment variables of the package. They are read in this module alone.

GEMMA_JAX_MODEL            the model of a ``ChatGemmaJax()`` without a ``model``, instead of an embedded one
GEMMA_JAX_SERVER           the server of a ``ChatGemmaJax()`` without a server, instead of this process's engine
GEMMA_JAX_API_KEY          the API key for that server
GEMMA_JAX_CACHE_DIR        an absolute folder for caches, which can always be made again
GEMMA_JAX_KERNELS          the package's own kernels: "auto", "off", or an instruction set
GEMMA_JAX_PROCESSOR        the class of processors to compile for, "avx2", "avx512" or "amx", instead of this very one
GEMMA_JAX_COMPILE_CACHE    an absolute folder for compiled programs, or "on" or "off"
GEMMA_JAX_COMPILE_WAIT     seconds that a request may wait for the compiler before a guard trips
XDG_CACHE_HOME             the folder of all programs' caches; ours is ``langchain-gemma-jax`` in it
JAX_COMPILATION_CACHE_DIR  JAX's own: if it is set, JAX's cache is left as it is
TF_CPP_MIN_LOG_LEVEL       JAX's own: the lowest level of native log messages that are shown
OLLAMA_MODELS              Ollama's own: the folder of its models
LLAMA_CACHE                llama.cpp's own: the folder of its downloads
XLA_FLAGS                  the compiler's own: programs are kept separately for each set of flags
LIBTPU_INIT_ARGS           likewise, for TPUs
XLA_CLIENT_MEM_FRACTION    JAX's own: its share of a GPU; XLA_PYTHON_CLIENT_MEM_FRACTION is its older name
MALLOC_TRIM_THRESHOLD_     glibc's, as MALLOC_MMAP_THRESHOLD_ and GLIBC_TUNABLES: one that is set is left alone

NO_COLOR                   a convention: if it is set, the command line prints no colors
TERM                       the terminal's kind; "dumb" is one that can only print lines

Libraries below this one have their own: huggingface_hub reads ``HF_TOKEN``, ``HF_HOME`` and
``HF_HUB_OFFLINE``, JAX reads ``JAX_PLATFORMS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_gemma_jax.errors import InputError

SERVER_OFF = "off"  # as a server: none, but this process
PROCESSOR_CLASSES = ("avx2", "avx512", "amx")
KERNEL_VARIANTS = ("portable", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm")


def kernels_wanted() -> str:
    """Return the kernels to use: "auto" for the best ones that can run, "off", or one of ``KERNEL_VARIANTS``.

    Raises:
        InputError: ``GEMMA_JAX_KERNELS`` has another value.
    """
    wanted = os.environ.get("GEMMA_JAX_KERNELS") or processor_class() or "auto"
    legal = ("auto", "off", *KERNEL_VARIANTS)
    if wanted.lower() not in legal:
        raise InputError(f"GEMMA_JAX_KERNELS: expected one of {', '.join(legal)}, found {wanted!r}.")
    return wanted.lower()


def processor_class() -> str | None:
    """Return the class of processors that programs are compiled for and named by; None: this very processor.

    Raises:
        InputError: ``GEMMA_JAX_PROCESSOR`` is no class, or the compiler's own flags say something else.
    """
    wanted = os.environ.get("GEMMA_JAX_PROCESSOR", "").lower()
    if not wanted:
        return None
    if wanted not in PROCESSOR_CLASSES:
        raise InputError(f"GEMMA_JAX_PROCESSOR: expected one of {', '.join(PROCESSOR_CLASSES)}, found {wanted!r}.")
    needed = f"--xla_cpu_max_isa={wanted}"
    if needed not in (flags := os.environ.get("XLA_FLAGS", "")).lower().split():
        raise InputError(
            f"GEMMA_JAX_PROCESSOR={wanted}: expected {needed} in XLA_FLAGS too, by which XLA compiles for this class, "
            f"found {flags!r}. Set both before the process begins."
        )
    return wanted


def default_model() -> str | None:
    """Return the default model from the environment; None if it is not set.

    Raises:
        InputError: ``GEMMA_JAX_MODEL`` has only spaces.
    """
    named = os.environ.get("GEMMA_JAX_MODEL") or None
    if named is not None and not named.strip():
        raise InputError(f"GEMMA_JAX_MODEL: expected the name of a model such as 'sprout-m', found {named!r}.")
    return named


def names_by_default(model: str) -> bool:
    """Return True if this model is the environment's default."""
    return os.environ.get("GEMMA_JAX_MODEL") == model


def default_server() -> str | None:
    """Return the default server from the environment; None for this process's own engine."""
    return os.environ.get("GEMMA_JAX_SERVER") or None


def default_api_key() -> str | None:
    """Return the API key from the environment, for servers without a key of their own; None if it is not set."""
    return os.environ.get("GEMMA_JAX_API_KEY") or None


def cache_dir() -> Path:
    """Return the folder for caches. It may not exist yet.

    Raises:
        InputError: ``GEMMA_JAX_CACHE_DIR`` is set, and is not an absolute path.
    """
    if own := os.environ.get("GEMMA_JAX_CACHE_DIR"):
        folder = Path(own).expanduser()
        if not folder.is_absolute():
            raise InputError(
                f"GEMMA_JAX_CACHE_DIR: expected an absolute folder such as /var/cache/gemma-jax, found {own!r}."
            )
        return folder
    return _shared_cache() / "langchain-gemma-jax"


def prefix_folder() -> Path:
    """Return the folder for prefixes that outlive a process. It may not exist yet.

    Raises:
        InputError: ``GEMMA_JAX_CACHE_DIR`` is set, and is not an absolute path.
    """
    return cache_dir() / "prefixes"


def allocator_is_set() -> bool:
    """Return True if the user has set how much free memory the allocator keeps."""
    return any(os.environ.get(name) for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"))


def weights_folder() -> Path:
    """Return the folder for files of mapped weights. It may not exist yet.

    Raises:
        InputError: ``GEMMA_JAX_CACHE_DIR`` is set, and is not an absolute path.
    """
    return cache_dir() / "weights"


def _shared_cache() -> Path:
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # unset, or relative, which the XDG specification says to ignore
        shared = Path.home() / ".cache"
    return shared


def ollama_models() -> Path:
    """Return the folder of Ollama's models: from the environment, this user's, or its service's."""
    if named := os.environ.get("OLLAMA_MODELS"):
        return Path(named).expanduser()
    own, service = Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")
    return service if not own.is_dir() and service.is_dir() else own


def llama_cache() -> Path:
    """Return the folder of llama.cpp's downloads."""
    return Path(os.environ.get("LLAMA_CACHE") or _shared_cache() / "llama.cpp").expanduser()


def compile_cache_root() -> Path | None:
    """Return the folder for compiled programs, which may not exist yet; None if they should not be kept.

    Raises:
        InputError: ``GEMMA_JAX_COMPILE_CACHE`` or ``GEMMA_JAX_CACHE_DIR`` has no possible value.
    """
    own = os.environ.get("GEMMA_JAX_COMPILE_CACHE", "")
    if own.lower() in {"off", "0"}:
        return None
    if own.lower() in {"", "on", "1"}:
        return cache_dir() / "xla"
    folder = Path(own).expanduser()
    if not folder.is_absolute():
        raise InputError(
            'GEMMA_JAX_COMPILE_CACHE: expected "on", "off" or an absolute folder such as /var/cache/gemma-jax/xla, '
            f"found {own!r}."
        )
    return folder


def compile_wait() -> float:
    """Return the seconds that a request may wait for the compiler before the recompile guard trips; 1 if it is not set.

    Raises:
        InputError: ``GEMMA_JAX_COMPILE_WAIT`` is no number of seconds.
    """
    given = os.environ.get("GEMMA_JAX_COMPILE_WAIT") or "1"
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 2**31:  # NaN is in no range
        raise InputError(f"GEMMA_JAX_COMPILE_WAIT: expected seconds from 0 to 2**31, found {given!r}.")
    return seconds


def jax_cache_is_set() -> bool:
    """Return True if the user has set JAX's own cache folder, or set it to an empty name, for no cache."""
    return os.environ.get("JAX_COMPILATION_CACHE_DIR") is not None


def compiler_flags() -> tuple[str, str]:
    """Return the user's flags for XLA, which compiled programs depend on."""
    return os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")


def memory_fraction() -> str:
    """Return the share of a GPU that JAX may take, as the environment sets it; "" if it does not."""
    return os.environ.get("XLA_CLIENT_MEM_FRACTION") or os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "")


def whole_environment() -> dict[str, str]:
    """Return all variables, for a process that is begun from here."""
    return dict(os.environ)


def native_log_level() -> int:
    """Return the lowest level of JAX's native log that is shown: 0 all, 1 warnings, 2 errors, 3 fatal errors."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    return int(level) if level.isdecimal() else 1  # JAX itself sets 1 when it is imported


def plain_terminal() -> bool:
    """Return True if the terminal should get plain lines, without colors or redrawing."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "dumb") in {"", "dumb"}


@contextmanager
def environment_kept() -> Iterator[None]:
    """Remove the variables that were set in a ``with`` block, such as by an import."""
    before = set(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]
