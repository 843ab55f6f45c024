"""Masks of transformers' models, as the rules that they are made of: which positions a query sees.

transformers has a mask made by the function that is registered for an attention. Ours keeps the rule, which holds for
any positions, and makes no tensor of it: most rules turn out to be a causal mask with a window or without, and
kernels know these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_gemma_jax.errors import UnsupportedModelError

MaskFunction: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""transformers' form of a rule: of a row, a head, a query's position and a key's, true where the key is seen."""


class StrangeMaskError(UnsupportedModelError, AttributeError):
    """A model's code treats a mask as a tensor. An ``AttributeError`` for ``hasattr``."""


@dataclass(frozen=True, eq=False)
class MaskRule:
    """The rule of a mask, in the place of a tensor."""

    function: MaskFunction

    def __getitem__(self, places: Any) -> MaskRule:
        """Return the same rule for slices that leave nothing out."""
        if all(each in (slice(None), slice(0, None)) for each in places):
            return self
        raise _changed()

    def __getattr__(self, name: str) -> Any:
        """Refuse what a tensor has."""
        raise _changed()

    def window(self, torch: Any, most: int) -> int | None:
        """Return the number of positions that a query sees, its own included; None: all before it, and its own.

        Args:
            torch: the library.
            most: the most positions of a context.

        Raises:
            ValueError: the rule is neither. ``visible`` evaluates it.
            UnsupportedModelError: a query sees positions after its own.
        """
        seen: set[int] = set()
        for query in sorted({0, 1, 7, most // 3, most // 2, most - 1}):
            keys = self._row(torch, query, most)
            count = int(keys.sum())
            if not bool(keys[query - count + 1 : query + 1].all()):
                raise ValueError("the positions that a query sees are not those right before it")
            if count <= query:
                seen.add(count)
            elif seen:
                raise ValueError("a later query sees more than a window")
        if len(seen) > 1:
            raise ValueError("windows of several lengths")
        return seen.pop() if seen else None

    def visible(self, torch: Any, queries: Any, keys: Any) -> Any:
        """Return which keys each query sees, for tensors of positions that broadcast."""
        nothing = torch.zeros((1,) * queries.ndim, dtype=torch.long)
        return self.function(nothing, nothing, queries, keys)

    def _row(self, torch: Any, query: int, most: int) -> Any:
        """Return which of the positions up to ``most`` a query sees."""
        with torch.device("cpu"):
            nothing, at, keys = torch.zeros(1, dtype=torch.long), torch.tensor([query]), torch.arange(most)
        try:
            seen = self.function(nothing, nothing, at, keys).expand(most)  # some rules do not look at keys
        except RuntimeError as error:  # tensors with numbers and such without do not mix
            raise ValueError("the rule depends on numbers that are not there") from error
        if seen.device.type == "meta":
            raise ValueError("the rule depends on numbers that are not there")
        if bool(seen[query + 1 :].any()):
            raise UnsupportedModelError("its attention looks ahead, and here a text is read once, from left to right.")
        return seen


def _changed() -> StrangeMaskError:
    return StrangeMaskError("its code changes the mask of its attention, and here a mask is a rule, and no tensor.")
