"""Translation of the tokenizer libraries' exceptions to ``TokenizerError``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError, TokenizerError


@contextmanager
def only_tokenizer_errors(path: Path, expected: str) -> Iterator[None]:
    """Raise any exception inside of the block as a ``TokenizerError`` about ``path``.

    Raises:
        TokenizerError: with the original exception as its cause.
    """
    try:
        yield
    except TokenizerError:
        raise
    except CheckpointError as error:
        raise TokenizerError(error.path, error.expected, error.found, error.advice) from error
    except Exception as error:  # the libraries raise a bare Exception, RuntimeError, OSError, UnicodeDecodeError, ...
        raise TokenizerError(path, expected, _one_line(error)) from error
    except BaseException as error:
        # A panic in Rust is a PanicException, which is no subclass of Exception and cannot be imported.
        # KeyboardInterrupt and SystemExit come here too, and have to pass.
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise TokenizerError(path, expected, f"a file that the library breaks on: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "nothing that it can say"
    return f"{type(error).__name__}: {text if len(text) <= 200 else text[:197] + '...'}"
