"""The one door to torch, transformers and torchax: imported when a model asks for them, without what they do aside."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jax

from langchain_gemma_jax.config import environment_kept
from langchain_gemma_jax.models.torchax.versions import check_versions

ATTENTION = "gemma_jax"  # the name of our attention in transformers
_SET_BY_TORCHAX = "jax_pjrt_client_create_options"  # a setting of JAX, and so a part of the names of programs

_lock = threading.RLock()
_found: TorchLibraries | None = None


@dataclass(frozen=True)
class TorchLibraries:
    """The libraries as they were imported, and what torchax translates with."""

    torch: Any
    transformers: Any
    tensor: Any  # torchax.tensor
    environment: Any  # of our own: what a caller sets in torchax's default one changes nothing here
    versions: tuple[str, ...]

    def tracing(self) -> Tracing:
        """While torch's functions are JAX's, in this thread. One thread at a time: modules are changed meanwhile."""
        return Tracing(self)

    def alone(self) -> AbstractContextManager[object]:
        """While no other thread traces or builds a module."""
        return _lock

    def to_jax(self, tree: Any) -> Any:
        """Return the arrays that tensors stand for."""
        return self.environment.t2j_iso(tree)

    def to_torch(self, tree: Any) -> Any:
        """Return tensors that stand for arrays."""
        return self.environment.j2t_iso(tree)


class Tracing:
    """A ``with`` block in which torch's functions are JAX's."""

    def __init__(self, found: TorchLibraries) -> None:
        self._found, self._inside = found, ExitStack()

    def __enter__(self) -> None:
        found = self._found
        with ExitStack() as stack:
            stack.enter_context(_lock)
            stack.enter_context(jax.numpy_dtype_promotion("standard"))  # as torchax is written, whatever a caller has
            stack.enter_context(jax.numpy_rank_promotion("allow"))
            stack.enter_context(found.environment)
            stack.enter_context(found.torch.no_grad())
            self._have_sound_casts(stack)
            self._inside = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.__exit__(kind, error, trace)

    def _have_sound_casts(self, stack: ExitStack) -> None:
        """Have ``type_as`` give a new tensor. torchax's own changes the one that it is asked of."""
        tensor = self._found.tensor.Tensor
        stack.callback(setattr, tensor, "type_as", tensor.type_as)
        tensor.type_as = lambda this, other: this.to(other.dtype)


def libraries() -> TorchLibraries:
    """Return the libraries, imported by the first call.

    Raises:
        InstallationError: one is missing, or they do not go together.
    """
    global _found  # noqa: PLW0603  one a process, as the libraries are
    with _lock:
        if _found is None:
            _found = _imported(check_versions())
        return _found


def _imported(versions: tuple[str, ...]) -> TorchLibraries:
    before = getattr(jax.config, _SET_BY_TORCHAX, None)
    with environment_kept():
        import torch
        import transformers
        from torchax import tensor
    if hasattr(jax.config, _SET_BY_TORCHAX):
        jax.config.update(_SET_BY_TORCHAX, before)
    from langchain_gemma_jax.models.torchax.traced_pass import attention

    transformers.AttentionInterface.register(ATTENTION, attention)
    return TorchLibraries(torch, transformers, tensor, tensor.Environment(), versions)
