"""The one door to torch, transformers and torchax: imported when a model asks for them, without what they do aside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """While torch's functions are JAX's, in this thread. One thread at a time: modules are changed meanwhile."""
        promotion = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")  # as torchax is written
        with _lock, promotion[0], promotion[1], self.environment, self.torch.no_grad(), self._sound_casts():
            yield

    @contextmanager
    def _sound_casts(self) -> Iterator[None]:
        """While ``type_as`` gives a new tensor. torchax's own changes the one that it is asked of."""
        kind = self.tensor.Tensor
        before = kind.type_as
        kind.type_as = lambda this, other: this.to(other.dtype)
        try:
            yield
        finally:
            kind.type_as = before

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other thread traces or builds a module."""
        with _lock:
            yield

    def to_jax(self, tree: Any) -> Any:
        """Return the arrays that tensors stand for."""
        return self.environment.t2j_iso(tree)

    def to_torch(self, tree: Any) -> Any:
        """Return tensors that stand for arrays."""
        return self.environment.j2t_iso(tree)


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
