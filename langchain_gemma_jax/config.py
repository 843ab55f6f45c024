"""Every environment variable that the package reads, read here and nowhere else.

GEMMA_JAX_MODEL            the model of a ``ChatGemmaJax()`` that names none, instead of an embedded one
GEMMA_JAX_SERVER           the server that a ``ChatGemmaJax()`` asks which names none, instead of this process's engine
GEMMA_JAX_API_KEY          the key that it shows there
GEMMA_JAX_CACHE_DIR        where to keep what can always be made again; an absolute folder
GEMMA_JAX_KERNELS          which of our own kernels run: "auto", "off", or an instruction set
GEMMA_JAX_COMPILE_CACHE    where to keep compiled programs; an absolute folder, or "on" or "off"
XDG_CACHE_HOME             the folder of all programs' caches; ours is ``langchain-gemma-jax`` in it
JAX_COMPILATION_CACHE_DIR  JAX's own: where it is set, JAX's cache is left as it is
TF_CPP_MIN_LOG_LEVEL       JAX's own: which messages of its compiled half are shown
OLLAMA_MODELS              Ollama's own: the folder that it keeps its models in
LLAMA_CACHE                llama.cpp's own: the folder that it keeps what it fetched in
XLA_FLAGS                  the compiler's own: with other flags, other programs are kept
LIBTPU_INIT_ARGS           the same for TPUs

NO_COLOR                   everybody's: where it is set, the command line prints no colours
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
KERNEL_VARIANTS = ("portable", "avx2", "avx512", "amx", "neon", "dotprod", "i8mm")


def kernels_wanted() -> str:
    """Which kernels are to run: "auto" for the best ones that can, "off", or one of ``KERNEL_VARIANTS``.

    Raises:
        InputError: ``GEMMA_JAX_KERNELS`` says something else.
    """
    wanted = os.environ.get("GEMMA_JAX_KERNELS") or "auto"
    legal = ("auto", "off", *KERNEL_VARIANTS)
    if wanted.lower() not in legal:
        raise InputError(f"GEMMA_JAX_KERNELS: expected one of {', '.join(legal)}, found {wanted!r}.")
    return wanted.lower()


def default_model() -> str | None:
    """The model that is meant where none is named; None if that was not said.

    Raises:
        InputError: ``GEMMA_JAX_MODEL`` holds nothing but spaces.
    """
    named = os.environ.get("GEMMA_JAX_MODEL") or None
    if named is not None and not named.strip():
        raise InputError(f"GEMMA_JAX_MODEL: expected the name of a model such as 'sprout-m', found {named!r}.")
    return named


def names_by_default(model: str) -> bool:
    """Whether the environment names this model, where none is named."""
    return os.environ.get("GEMMA_JAX_MODEL") == model


def default_server() -> str | None:
    """The server that is meant where none is named; None for this process's own engine."""
    return os.environ.get("GEMMA_JAX_SERVER") or None


def default_api_key() -> str | None:
    """The key for that server, or for one that is named without a key; None if there is none."""
    return os.environ.get("GEMMA_JAX_API_KEY") or None


def cache_dir() -> Path:
    """The folder for what can always be made again. It may not exist yet.

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
    """The folder for prefixes that outlive a process. It may not exist yet.

    Raises:
        InputError: ``GEMMA_JAX_CACHE_DIR`` is set, and is not an absolute path.
    """
    return cache_dir() / "prefixes"


def _shared_cache() -> Path:
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # unset or, as the XDG specification asks, not to be used
        shared = Path.home() / ".cache"
    return shared


def ollama_models() -> Path:
    """The folder that Ollama keeps its models in: the one that is named, this user's, or its service's."""
    if named := os.environ.get("OLLAMA_MODELS"):
        return Path(named).expanduser()
    own, service = Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")
    return service if not own.is_dir() and service.is_dir() else own


def llama_cache() -> Path:
    """The folder that llama.cpp keeps what it fetched in."""
    return Path(os.environ.get("LLAMA_CACHE") or _shared_cache() / "llama.cpp").expanduser()


def compile_cache_root() -> Path | None:
    """The folder for compiled programs, which may not exist yet; None if they are not to be kept.

    Raises:
        InputError: ``GEMMA_JAX_COMPILE_CACHE`` or ``GEMMA_JAX_CACHE_DIR`` says nothing that can be done.
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


def jax_cache_is_set() -> bool:
    """Whether the user gave JAX a cache of their own, or an empty name for none at all."""
    return os.environ.get("JAX_COMPILATION_CACHE_DIR") is not None


def compiler_flags() -> tuple[str, str]:
    """What the user tells XLA: compiled programs depend on it."""
    return os.environ.get("XLA_FLAGS", ""), os.environ.get("LIBTPU_INIT_ARGS", "")


def native_log_level() -> int:
    """Which messages of JAX's compiled half are shown: 0 all, 1 warnings and errors, 2 errors, 3 fatal ones alone."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    return int(level) if level.isdecimal() else 1  # which is what JAX itself sets when it is imported


def plain_terminal() -> bool:
    """Whether the terminal is to get plain lines: no colours, and nothing drawn anew."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "dumb") in {"", "dumb"}


@contextmanager
def environment_kept() -> Iterator[None]:
    """While something is imported that sets variables: those that were not there before are gone afterwards."""
    before = set(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]
