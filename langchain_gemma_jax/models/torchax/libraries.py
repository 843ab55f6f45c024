"""The only import of torch, transformers and torchax: when a model needs them, and without their side effects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jax

from langchain_gemma_jax.config import environment_kept
from langchain_gemma_jax.models.torchax.versions import check_versions

ATTENTION = "gemma_jax"  # the name of our attention in transformers
EAGER = "eager"  # transformers' name for a model's own attention
_SET_BY_TORCHAX = "jax_pjrt_client_create_options"  # a setting of JAX, which is a part of the names of programs

_lock = threading.RLock()
_libraries: TorchLibraries | None = None


@dataclass(frozen=True)
class TorchLibraries:
    """The imported libraries, and torchax's environment for the translation of tensors."""

    torch: Any
    transformers: Any
    tensor: Any  # torchax.tensor
    environment: Any  # our own: a caller's settings in torchax's default environment have no effect here
    versions: tuple[str, ...]

    def tracing(self) -> Tracing:
        """Return a block in which torch's functions run on JAX. One thread at a time: modules are changed in it."""
        return Tracing(self)

    def alone(self) -> AbstractContextManager[object]:
        """Return a block in which no other thread traces or builds a module."""
        return _lock

    @contextmanager
    def trusting(self) -> Iterator[None]:
        """Have torch's distributions not look at their parameters, which have no numbers yet, inside of the block."""
        distribution = self.torch.distributions.Distribution
        before = distribution._validate_args  # noqa: SLF001  there is a function to set it, and none to get it
        distribution.set_default_validate_args(False)
        try:
            yield
        finally:
            distribution.set_default_validate_args(before)

    def to_jax(self, tree: Any) -> Any:
        """Return the JAX arrays of a tree of tensors."""
        return self.environment.t2j_iso(tree)

    def to_torch(self, tree: Any) -> Any:
        """Return a tree of tensors for JAX arrays."""
        return self.environment.j2t_iso(tree)


class Tracing:
    """A ``with`` block in which torch's functions run on JAX."""

    def __init__(self, shared: TorchLibraries) -> None:
        self._shared, self._inside = shared, ExitStack()

    def __enter__(self) -> None:
        shared = self._shared
        with ExitStack() as stack:
            stack.enter_context(_lock)
            stack.enter_context(jax.numpy_dtype_promotion("standard"))  # torchax needs both, whatever the caller's are
            stack.enter_context(jax.numpy_rank_promotion("allow"))
            stack.enter_context(shared.environment)
            stack.enter_context(shared.torch.no_grad())
            stack.enter_context(shared.trusting())
            self._fix_casts(stack)
            self._inside = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.__exit__(kind, error, trace)

    def _fix_casts(self, stack: ExitStack) -> None:
        """Make ``type_as`` return a new tensor. torchax's own changes the tensor that it is called on."""
        tensor = self._shared.tensor.Tensor
        stack.callback(setattr, tensor, "type_as", tensor.type_as)
        tensor.type_as = lambda this, other: this.to(other.dtype)


def libraries() -> TorchLibraries:
    """Return the libraries. The first call imports them.

    Raises:
        InstallationError: a library is missing, or their releases do not fit together.
    """
    global _libraries  # noqa: PLW0603  one a process, as the libraries are
    with _lock:
        if _libraries is None:
            _libraries = _imported(check_versions())
        return _libraries


def _imported(versions: tuple[str, ...]) -> TorchLibraries:
    before = getattr(jax.config, _SET_BY_TORCHAX, None)
    with environment_kept():
        import torch
        import transformers
        from torchax import tensor
    if hasattr(jax.config, _SET_BY_TORCHAX):
        jax.config.update(_SET_BY_TORCHAX, before)
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    from langchain_gemma_jax.models.torchax.traced_pass import attention, mask_of_the_pass

    transformers.AttentionInterface.register(ATTENTION, attention)
    for name in (ATTENTION, EAGER):
        AttentionMaskInterface.register(name, mask_of_the_pass(eager_mask))
    return TorchLibraries(torch, transformers, tensor, tensor.Environment(), versions)
