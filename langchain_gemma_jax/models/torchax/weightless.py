"""Construction of a torch module without memory for its weights, while the numbers that its code asks for are real."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

_LARGE = 1 << 20  # numbers: a tensor of constants with more is a weight that has not been read yet


def weightless(torch: Any) -> AbstractContextManager[object]:
    """Return a block in which tensors of weights get the device "meta", and all others have numbers.

    On the device "meta" alone, a model whose code calls ``item()`` while it is built could not be. Weights are made by
    ``torch.empty``, or are large; rates, slopes and frequencies are small, and computed.
    """
    constants = {torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}

    class Weightless(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is Any here
        def __torch_function__(
            self, function: Callable[..., Any], types: Any, args: Any = (), options: dict[str, Any] | None = None
        ) -> Any:
            options = options or {}
            if function is torch.empty or function in constants:
                made = function(*args, **{**options, "device": "meta"})
                if function is torch.empty or made.numel() > _LARGE:
                    return made
            return function(*args, **options)

    block: AbstractContextManager[object] = Weightless()
    return block
