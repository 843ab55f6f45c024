"""A torch module as a function of arrays, to call, jit, differentiate or compile in a user's own program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.errors import ClosedError, InputError
from langchain_gemma_jax.models.seams.params import Params
from langchain_gemma_jax.models.seams.placement import Placement, placement_of
from langchain_gemma_jax.models.torchax.libraries import TorchLibraries, libraries
from langchain_gemma_jax.models.torchax.reading import moved
from langchain_gemma_jax.models.torchax.versions import check_versions

_registered: set[type] = set()  # transformers' output classes that are registered with JAX


def as_function(module: Any, where: jax.Device | Placement | None = None) -> tuple[Params, Callable[..., Any]]:
    """Return a torch module's weights as arrays, and the module as a function of them.

        params, run = as_function(module)
        scores = run(params, input_ids=ids, use_cache=False).logits
        scores = jax.jit(partial(run, use_cache=False))(params, input_ids=ids).logits

    The weights are moved out of torch's memory, so the module cannot be called by torch any more. The outputs of
    transformers' models (``CausalLMOutputWithPast`` and the like) are trees of arrays to JAX.

    Args:
        module: any ``torch.nn.Module`` whose operators torchax supports.
        where: the placement of the weights. By default the first device of JAX.

    Raises:
        InstallationError: torch, transformers or torchax is missing, or their releases do not fit together.
    """
    check_versions()
    shared = libraries()
    with shared.alone():
        params = moved(module, placement_of(where))
    return params, partial(_run, shared, module)


class CompiledModule:
    """A torch module that JAX compiles when it is called: one program per set of shapes and plain options.

    model = CompiledModule(module)
    scores = model(ids, use_cache=False).logits
    """

    def __init__(self, module: Any, where: jax.Device | Placement | None = None) -> None:
        """Move the module's weights. See ``as_function``."""
        self.name = type(module).__name__
        self.params, run = as_function(module, where)

        def call(params: Params, args: Any, arrays: dict[str, Any], plain: tuple[tuple[str, Any], ...]) -> Any:
            return run(params, *args, **arrays, **dict(plain))

        self._jitted: Any = jax.jit(call, static_argnums=3)
        self._closed = False

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the module. Arrays are traced; other options (flags, numbers, names) are compiled into the program.

        Raises:
            ClosedError: its weights were freed. InputError: its output is no tree of arrays.
        """
        if self._closed:
            raise ClosedError(f"The module {self.name} was closed. Make it again.")
        arrays = {name: value for name, value in options.items() if _is_tree_of_arrays(value)}
        plain = tuple(sorted((name, value) for name, value in options.items() if name not in arrays))
        return self._jitted(self.params, args, arrays, plain)

    @property
    def compiles(self) -> int:
        """Number of compiled programs."""
        return int(self._jitted._cache_size())  # noqa: SLF001  JAX has no public name for it

    def close(self) -> None:
        """Free the weights. May be called twice."""
        self._closed = True
        for array in self.params.values():
            if not array.is_deleted():
                array.delete()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(shared: TorchLibraries, module: Any, params: Mapping[str, Any], *args: Any, **options: Any) -> Any:
    given = jax.tree.map(lambda value: jnp.asarray(value) if isinstance(value, np.ndarray) else value, (args, options))
    with shared.tracing():
        views, (args, options) = shared.to_torch((dict(params), given))
        out = shared.torch.func.functional_call(module, views, args, options, tie_weights=True)
        if not isinstance(out, shared.transformers.utils.ModelOutput):
            return _checked(module, shared.to_jax(out))
        kind, names = type(out), tuple(out.keys())
        values = shared.to_jax(tuple(dict(out).values()))
    _register(kind)
    return _made(kind, names, _checked(module, values))


def _checked(module: Any, tree: Any) -> Any:
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, jax.Array):
            raise InputError(
                f"{type(module).__name__} answers with a {type(leaf).__name__}, which is no tree of arrays. Pass "
                "use_cache=False if it is a cache: the one of fixed size is models.seams.kv_cache, and a model that "
                'was loaded by load("torchax:...") writes to it.'
            )
    return tree


def _register(kind: type) -> None:
    """Register an output class with JAX as a tree."""
    if kind not in _registered:
        _registered.add(kind)
        jax.tree_util.register_pytree_with_keys(
            kind,
            lambda out: ([(jax.tree_util.DictKey(name), out[name]) for name in out], tuple(out.keys())),
            lambda names, values: _made(kind, names, values),
        )


def _made(kind: Any, names: tuple[str, ...], values: Any) -> Any:
    """Return an output object without its own checks, which would look into arrays that may be traced."""
    made = kind.__new__(kind)
    for name in made.__dataclass_fields__:
        object.__setattr__(made, name, None)
    for name, value in zip(names, values, strict=True):
        made[name] = value
    return made


def _is_tree_of_arrays(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    return bool(leaves) and all(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves)
