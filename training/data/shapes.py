"""What values of each kind look like: by that, one is told from another where no label was said."""

from __future__ import annotations

_ANY_WORDS = (
    "person place city country company topic title phrase word message task query venue handle things people "
    "occupation letter"
)
_KINDS = (
    _ANY_WORDS,
    "email",
    "url",
    "code zip timezone",
    "phone",
    "date",
    "time",
    "street",
    "language",
    "unit",
    "count integer decimal percent year id numbers age stars",
    "file",
    "when",
    "currency ticker",
    "expression",
)

SHAPES = {kind: number for number, kinds in enumerate(_KINDS) for kind in kinds.split()}
"""The number of the shape that a kind's values have."""
