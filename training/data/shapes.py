"""What values of each kind look like: by that, one is told from another where no label was said."""

from __future__ import annotations

_ANY_WORDS = (
    "person place city country company topic title phrase word message task query venue handle things people "
    "occupation letter question task_text role_name dish food cuisine room table symbol repo"
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
    "file path folder",
    "when moment",
    "currency ticker",
    "expression formula python command sql",
)

SHAPES = {kind: number for number, kinds in enumerate(_KINDS) for kind in kinds.split()}
"""The number of the shape that a kind's values have."""
