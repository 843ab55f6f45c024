"""The loss on a page of English: whether an engine computes with the file's numbers, or with fewer.

Read in environments that have neither JAX nor this package: the standard library, and numpy where scores are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PAGE = 512  # tokens of the text


def mean_loss(rows: Iterable[npt.NDArray[np.float32]], ids: Sequence[int]) -> float:
    """The mean negative log-probability of each token behind the first, by the scores at the place before it."""
    import numpy as np  # some rivals' environments lack it, and tell no scores

    found = []
    for scores, token in zip(rows, ids[1:], strict=False):
        whole = scores.astype(np.float64)
        top = whole.max()
        found.append(top + np.log(np.exp(whole - top).sum()) - whole[token])
    if len(found) != len(ids) - 1:
        raise RuntimeError(f"Expected scores at {len(ids) - 1} places, found {len(found)}.")
    return float(np.mean(found))
